#include "controller/prepare/executor_door.h"

#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "controller/prepare/testing/proven.h"
#include "libs/net/testing/fake_transport.h"
#include "libs/wire/expiry.h"
#include "libs/wire/token.h"

namespace controller {
namespace {

const wire::Identity kTold{"uid-1", 1, 1, 4};
constexpr char kKey[] = "admin key";

class Door : public testing::Test {
 protected:
  // What `resumed` makes of an executor's answer.
  base::Result<wire::Health> tell(const wire::Health& answer) {
    net::FakeTransport transport([&](const net::Request& request) {
      return answer_with_proof(answer, kKey, question_of(request));
    });
    HttpExecutorDoor door(transport, {.url = std::string(kTestRoute)}, kKey, "token");
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

// An answer that is all that was hoped for, by somebody without the key.
struct Impostor {
  const char* name;
  std::function<net::Answer(const wire::Health&, const wire::Question&)> play;
};
void PrintTo(const Impostor& impostor, std::ostream* out) { *out << impostor.name; }

net::Answer unproven(const wire::Health& health) {
  return net::answer(200, base::to_text(wire::to_json(health)));
}

const Impostor kImpostors[] = {
    {"without_a_proof", [](const auto& health, const auto&) { return unproven(health); }},
    {"with_another_key",
     [](const auto& health, const auto& asked) { return answer_with_proof(health, "k", asked); }},
    {"with_an_empty_key",
     [](const auto& health, const auto& asked) { return answer_with_proof(health, "", asked); }},
    {"with_the_proof_of_another_time",
     [](const auto& health, auto asked) {
       asked.nonce = wire::new_nonce();
       return answer_with_proof(health, kKey, asked);
     }},
    {"with_the_proof_of_another_question",
     [](const auto& health, auto asked) {
       asked.path = asked.path == "/v1/health" ? "/v1/quiesce" : "/v1/health";
       return answer_with_proof(health, kKey, asked);
     }},
    {"with_the_proof_of_another_answer",
     [](auto health, const auto& asked) {
       net::Answer answer = unproven(health);
       health.identity.run += 1;
       answer.headers = answer_with_proof(health, kKey, asked).headers;
       return answer;
     }},
};

class Unproven : public testing::TestWithParam<Impostor> {};

TEST_P(Unproven, IsNotOurExecutor) {
  net::FakeTransport transport([&](const net::Request& request) {
    return GetParam().play({.instance = "i", .version = "1", .identity = kTold},
                           question_of(request));
  });
  HttpExecutorDoor door(transport, {.url = std::string(kTestRoute)}, kKey, "token");
  for (const auto& health : {door.health({}), door.quiesce({}, {}), door.resumed({kTold, 1}, {})}) {
    ASSERT_FALSE(health);
    EXPECT_EQ(health.error().code, base::ErrorCode::kDenied) << health.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(, Unproven, testing::ValuesIn(kImpostors),
                         [](const auto& info) { return info.param.name; });

TEST_F(Door, AsksWithAFreshNonceEachTime) {
  net::FakeTransport transport([](const net::Request&) { return net::answer(503); });
  HttpExecutorDoor door(transport, {.url = std::string(kTestRoute)}, kKey, "token");
  (void)door.health({});
  (void)door.health({});
  const auto asked = transport.requests();
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_NE(question_of(asked[0]).nonce, question_of(asked[1]).nonce);
}

// An executor by whose clock it is `now`, until it is told another time.
struct ByItsClock {
  net::Answer operator()(const net::Request& request) {
    const wire::Question question = question_of(request);
    const std::string token = request.headers.find("Authorization").value_or("").substr(7);
    if (!wire::verify(token, wire::TokenKind::kAdmin, kKey, now)) {
      const std::string body = base::to_text(wire::expired_body(now));
      return net::answer(401, body, {{wire::kProofField, wire::prove(key, question, body)}});
    }
    if (question.path == "/v1/time")
      now = base::WallTime(base::Milliseconds(
          wire::time_of_day_from_json(*base::parse_json(question.body))->now_ms));
    return answer_with_proof({.instance = "i", .version = "1", .identity = kTold}, kKey, question);
  }
  base::WallTime now;
  const char* key = kKey;
};

TEST_F(Door, TellsTheTimeToAnExecutorWhoseClockIsAhead) {
  const base::WallTime now{std::chrono::hours(480'000)};
  const std::string token = wire::sign({.kind = wire::TokenKind::kAdmin,
                                        .uid = "uid-1",
                                        .epoch = 1,
                                        .issued = now,
                                        .expires = now + std::chrono::minutes(10)},
                                       kKey);
  const struct {
    const char* name;
    base::Milliseconds ahead;
    const char* key;
    bool heard;
    std::size_t asked;
  } cases[] = {
      {"the same", base::Milliseconds(0), kKey, true, 1},
      {"within the slack", std::chrono::minutes(14), kKey, true, 1},
      {"ahead", std::chrono::hours(2), kKey, true, 3},
      {"behind", -std::chrono::hours(2), kKey, true, 1},
      {"an impostor's", std::chrono::hours(2), "another key", false, 1},
  };
  for (const auto& test : cases) {
    ByItsClock executor{now + test.ahead, test.key};
    net::FakeTransport transport([&](const net::Request& request) { return executor(request); });
    HttpExecutorDoor door(transport, {.url = std::string(kTestRoute)}, kKey, token);
    const auto health = door.health({});
    EXPECT_EQ(health.ok(), test.heard) << test.name;
    if (!health) EXPECT_NE(health.error().code, base::ErrorCode::kDenied) << "none is replaced";
    EXPECT_EQ(transport.requests().size(), test.asked) << test.name;
    if (test.asked > 1) EXPECT_EQ(executor.now, now) << test.name;
  }
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
    {"nobody_listens", 502,
     R"({"sandboxId":"sb-1","message":"running but port is not open","port":24984,"code":502})",
     ErrorCode::kNotFound},
    {"nobody_listens_on_another_port", 502, R"({"sandboxId":"sb-1","port":49983,"code":502})",
     ErrorCode::kUnavailable},
    {"no_such_sandbox", 502, R"({"sandboxId":"sb-1","message":"not found","code":502})",
     ErrorCode::kUnavailable},
    {"a_stranger_who_names_a_port", 502, R"({"port":24984})", ErrorCode::kUnavailable},
    {"a_gateway_without_words", 502, "<html>Bad Gateway</html>", ErrorCode::kUnavailable},
    {"an_edge_without_words", 502, "", ErrorCode::kUnavailable},
    {"a_gateway_that_waited", 504, R"({"sandboxId":"sb-1","port":24984})", ErrorCode::kUnavailable},
};

class Refused : public testing::TestWithParam<Refusal> {};

TEST_P(Refused, TellsTheExecutorFromTheWayToIt) {
  net::FakeTransport transport(
      [&](const net::Request&) { return net::answer(GetParam().status, GetParam().body); });
  HttpExecutorDoor door(transport, {.url = std::string(kTestRoute)}, kKey, "token");
  const auto health = door.health({});
  ASSERT_FALSE(health);
  EXPECT_EQ(health.error().code, GetParam().code) << health.error().message;
}

TEST_F(Door, RepeatsNoTokenThatARefusalEchoes) {
  net::FakeTransport transport([&](const net::Request&) {
    return net::answer(401, R"({"error":"wrong: secret-token\nsecret-token"})");
  });
  HttpExecutorDoor door(transport, {.url = std::string(kTestRoute)}, kKey, "secret-token");
  const auto health = door.health({});
  ASSERT_FALSE(health);
  EXPECT_EQ(health.error().message.find("secret-token"), std::string::npos)
      << health.error().message;
}

INSTANTIATE_TEST_SUITE_P(, Refused, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace controller
