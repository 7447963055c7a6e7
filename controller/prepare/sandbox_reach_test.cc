#include "controller/prepare/sandbox_reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "libs/net/testing/fake_transport.h"

namespace controller {
namespace {

// What a provider's spec of its data plane may lead to.
struct Site {
  const char* name;
  std::function<net::Answer(const net::Request&)> play;
};
void PrintTo(const Site& site, std::ostream* out) { *out << site.name; }

std::function<net::Answer(const net::Request&)> always(net::Answer answer) {
  return [answer](const net::Request&) { return answer; };
}

const Site kSites[] = {
    {"nobody", always(net::refused_connection())},
    {"one_that_speaks_tls_or_does_not", always(net::lost_answer())},
    {"a_web_server", always(net::answer(404, "<html>nginx</html>"))},
    {"an_edge_of_another_routing", always(net::answer(400, "missing header"))},
    {"an_edge_that_takes_the_host_for_an_id",
     always(net::answer(404, R"({"sandboxId":"www","message":"not found","code":404})"))},
    {"the_control_plane",
     [](const net::Request& request) {
       if (request.url.ends_with("/health")) return net::answer(204);
       return net::answer(404, R"({"code":404,"message":"no such route"})");
     }},
};

class WrongWay : public testing::TestWithParam<Site> {};

TEST_P(WrongWay, IsNamedWithWhatToCheck) {
  const base::SystemClock clock;
  auto transport = std::make_shared<net::FakeTransport>(GetParam().play);
  const ExecutorFiles none;
  SandboxReach reach([&](const auto&) { return transport; }, clock, std::string(32, 'k'), none);
  const Target target{
      .provider = {.data_url = "http://me:s3cret@data.test:1/", .routing = api::Routing::kHeader},
      .handle = {.id = "sb-1"},
      .uid = "uid-1",
      .epoch = 1};
  const auto prepared = reach.prepare(target, false, [](std::string_view) {}, {});
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().code, base::ErrorCode::kUnavailable);
  EXPECT_THAT(prepared.error().message,
              testing::EndsWith("; the SandboxProvider says spec.data.url http://data.test:1/ and "
                                "spec.data.routing Header: check both"));
  EXPECT_THAT(prepared.error().message, testing::Not(testing::HasSubstr("envd answered")));
}

INSTANTIATE_TEST_SUITE_P(, WrongWay, testing::ValuesIn(kSites),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace controller
