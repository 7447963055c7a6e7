#include "controller/probe.h"

#include <gmock/gmock.h>

#include "libs/net/testing/fake_transport.h"

namespace controller {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

base::Result<std::string> probe_of(net::Answer answer) {
  net::FakeTransport transport([&](const net::Request&) { return answer; });
  return probe(transport, "http://controller:8080/readyz");
}

TEST(Probe, HandsOnTheWordsOfOneThatWorks) {
  const auto answered = probe_of(net::answer(200, "ok\n"));
  ASSERT_TRUE(answered);
  EXPECT_THAT(*answered, HasSubstr("ok"));
}

TEST(Probe, TellsWhatTheTroubleIs) {
  struct Case {
    net::Answer answer;
    base::ErrorCode code;
    std::string words;
  };
  const Case kCases[] = {
      {net::answer(503, "no list yet"), base::ErrorCode::kUnavailable, "503: no list yet"},
      {net::answer(404, "who?"), base::ErrorCode::kNotFound, "404: who?"},
      {net::answer(204), base::ErrorCode::kUnavailable, "204"},
      {net::refused_connection(), base::ErrorCode::kUnavailable, "readyz"},
      {net::answer(200, std::string(65 << 10, 'x')), base::ErrorCode::kInvalid, "readyz"},
  };
  for (const Case& each : kCases) {
    const auto answered = probe_of(each.answer);
    ASSERT_FALSE(answered) << each.words;
    EXPECT_EQ(answered.error().code, each.code) << each.words;
    EXPECT_THAT(answered.error().message,
                AllOf(HasSubstr("controller:8080"), HasSubstr(each.words)));
  }
}

}  // namespace
}  // namespace controller
