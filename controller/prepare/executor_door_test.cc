#include "controller/prepare/executor_door.h"

#include <gtest/gtest.h>

#include <ostream>

#include "libs/net/testing/fake_transport.h"

namespace controller {
namespace {

const wire::Identity kTold{"uid-1", 1, 1, 4};

class Door : public testing::Test {
 protected:
  // What `resumed` makes of an executor's answer.
  base::Result<wire::Health> tell(const wire::Health& answer) {
    net::FakeTransport transport([&](const net::Request&) {
      return net::answer(200, base::to_text(wire::to_json(answer)));
    });
    HttpExecutorDoor door(transport, {.url = "http://inside"}, "token");
    return door.resumed({kTold, 1}, {});
  }
};

TEST_F(Door, BelievesAnExecutorThatAnswersAsItWasTold) {
  EXPECT_TRUE(tell({.instance = "i", .version = "1", .identity = kTold}));
}

TEST_F(Door, BelievesNoneThatStaysAnotherOrQuiesced) {
  EXPECT_FALSE(tell({.instance = "i", .version = "1", .identity = {"uid-1", 1, 1, 3}}));
  EXPECT_FALSE(tell({.instance = "i", .version = "1", .identity = kTold, .quiesced = true}));
}

// What a request becomes when it is answered so.
struct Refusal {
  const char* name;
  int status;
  const char* body;
  base::ErrorCode code;
};
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

using base::ErrorCode;
const Refusal kRefusals[] = {
    {"the_executors_token", 401, R"({"error":"token refused"})", ErrorCode::kDenied},
    {"the_executors_identity", 409, R"({"error":"another world"})", ErrorCode::kDenied},
    {"an_edges_token", 401, R"({"sandboxId":"sb-1","message":"no token"})", ErrorCode::kConflict},
    {"an_edges_longer_error", 401, R"({"error":"no token","code":401})", ErrorCode::kConflict},
    {"an_edges_words", 401, "Unauthorized", ErrorCode::kConflict},
    {"an_edges_silence", 403, "", ErrorCode::kConflict},
    {"a_403_is_never_the_executors", 403, R"({"error":"forbidden"})", ErrorCode::kConflict},
    {"a_409_of_an_edge", 409, R"({"code":409,"message":"busy"})", ErrorCode::kUnavailable},
    {"nobody_listens", 502, R"({"error":"port is not open"})", ErrorCode::kUnavailable},
};

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, TellsTheExecutorFromTheWayToIt) {
  net::FakeTransport transport(
      [&](const net::Request&) { return net::answer(GetParam().status, GetParam().body); });
  HttpExecutorDoor door(transport, {.url = "http://inside"}, "token");
  const auto health = door.health({});
  ASSERT_FALSE(health);
  EXPECT_EQ(health.error().code, GetParam().code) << health.error().message;
}

TEST_F(Door, RepeatsNoTokenThatARefusalEchoes) {
  net::FakeTransport transport([&](const net::Request&) {
    return net::answer(401, R"({"error":"wrong: secret-token\nsecret-token"})");
  });
  HttpExecutorDoor door(transport, {.url = "http://inside"}, "secret-token");
  const auto health = door.health({});
  ASSERT_FALSE(health);
  EXPECT_EQ(health.error().message.find("secret-token"), std::string::npos)
      << health.error().message;
}

INSTANTIATE_TEST_SUITE_P(, Refused, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace controller
