#include <gtest/gtest.h>

#include <cstdio>

#include "libs/base/testing/live_bytes.h"
#include "libs/kube/informer.h"
#include "libs/kube/testing/fake_server.h"
#include "libs/kube/testing/running_sandbox.h"

// What an object costs in memory.
namespace kube {
namespace {

using namespace std::chrono_literals;
using base::Json;

constexpr int kObjects = 500;
constexpr long kBytesMax = 2'048;  // An object.

TEST(InformerMemory, HoldsAnObjectInLittle) {
  FakeServer server([](const net::Request& request) {
    if (request.url.find("watch=true") != std::string::npos) return net::silent_answer();
    Json items = Json::array();
    for (int number = 0; number < kObjects; ++number) items.push_back(running_sandbox(number));
    return net::answer(200, base::to_text(Json{{"metadata", {{"resourceVersion", "200000"}}},
                                               {"items", std::move(items)}}));
  });
  Informer<api::Sandbox> informer(server.client(), server.clock(), kSandboxes, {},
                                  api::sandbox_from_json, {.course = {.streaming = false}});
  const long before = base::live_bytes;
  informer.start();
  ASSERT_TRUE(informer.wait_until_synced(200s, {}));
  // The list is freed a moment after it is taken in: the watch comes after it.
  while (server.transport().count("GET", "watch=true") == 0) std::this_thread::sleep_for(1ms);
  const long each = (base::live_bytes - before) / kObjects;
  std::printf("%ld bytes an object, of %zu as JSON\n", each,
              base::to_text(running_sandbox(0)).size());
  RecordProperty("bytes_an_object", static_cast<int>(each));
  EXPECT_LE(each, kBytesMax);
  EXPECT_EQ(informer.store().size(), static_cast<std::size_t>(kObjects));
}

}  // namespace
}  // namespace kube
