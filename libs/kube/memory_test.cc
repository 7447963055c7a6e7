#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "libs/kube/informer.h"
#include "libs/kube/testing/fake_server.h"

// What an object costs in memory: every allocation of this program is counted.
namespace {
std::atomic<long> g_live_bytes{0};
}

void* operator new(std::size_t size) {
  void* memory = std::malloc(size);
  if (!memory) std::abort();
  g_live_bytes += static_cast<long>(malloc_usable_size(memory));
  return memory;
}
void operator delete(void* memory) noexcept {
  g_live_bytes -= static_cast<long>(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace kube {
namespace {

using namespace std::chrono_literals;
using base::Json;

constexpr int kObjects = 2'000;
constexpr long kBytesMax = 4'096;  // An object.

// A running Sandbox as a cluster has it.
Json sandbox(int number) {
  const std::string n = std::to_string(number);
  Json conditions = Json::array();
  for (const char* type : {"Ready", "Reconciling", "Bound", "Prepared"})
    conditions.push_back({{"type", type},
                          {"status", "True"},
                          {"reason", "Running"},
                          {"message", "the E2B sandbox runs and its executor answers"},
                          {"observedGeneration", 1},
                          {"lastTransitionTime", "2026-11-29T17:46:31Z"}});
  return {
      {"apiVersion", "sandfleet.dev/v1alpha1"},
      {"kind", "Sandbox"},
      {"metadata",
       {{"name", "agent-" + n},
        {"namespace", "team-a"},
        {"uid", "0e3f8a52-8d0b-4d1c-9a6e-" + n},
        {"resourceVersion", std::to_string(100'000 + number)},
        {"generation", 1},
        {"creationTimestamp", "2026-11-29T17:46:31Z"},
        {"finalizers", {"sandfleet.dev/e2b-sandbox"}},
        {"labels", {{"app.kubernetes.io/part-of", "harness"}}},
        {"annotations",
         {{"sandfleet.dev/attempt", R"({"nonce":"0123456789abcdef0123456789abcdef","epoch":1})"},
          {"kubectl.kubernetes.io/last-applied-configuration", std::string(2'000, 'x')}}},
        {"managedFields", {{{"manager", "kubectl"}, {"fieldsV1", std::string(4'000, 'x')}}}}}},
      {"spec", {{"providerRef", {{"name", "default"}}}, {"template", {{"id", "base"}}}}},
      {"status",
       {{"observedGeneration", 1},
        {"conditions", conditions},
        {"state", "Running"},
        {"sandboxID", "i0123456789abcdefghij"},
        {"epoch", 1},
        {"endpoint", {{"url", "https://49984-i0123456789abcdefghij.e2b.test"}}}}}};
}

TEST(InformerMemory, HoldsAnObjectInLittle) {
  FakeServer server([](const net::Request& request) {
    if (request.url.find("watch=true") != std::string::npos) return net::silent_answer();
    Json items = Json::array();
    for (int number = 0; number < kObjects; ++number) items.push_back(sandbox(number));
    return net::answer(200, base::to_text(Json{{"metadata", {{"resourceVersion", "200000"}}},
                                               {"items", std::move(items)}}));
  });
  Informer<api::Sandbox> informer(server.client(), server.clock(), kSandboxes, {},
                                  api::sandbox_from_json, {.course = {.streaming = false}});
  const long before = g_live_bytes;
  informer.start();
  ASSERT_TRUE(informer.wait_until_synced(50s, {}));
  // The list is freed a moment after it is taken in: the watch comes after it.
  while (server.transport().count("GET", "watch=true") == 0) std::this_thread::sleep_for(1ms);
  const long each = (g_live_bytes - before) / kObjects;
  std::printf("%ld bytes an object, of %zu as JSON\n", each, base::to_text(sandbox(0)).size());
  RecordProperty("bytes_an_object", static_cast<int>(each));
  EXPECT_LE(each, kBytesMax);
  EXPECT_EQ(informer.store().size(), static_cast<std::size_t>(kObjects));
}

}  // namespace
}  // namespace kube
