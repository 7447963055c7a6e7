#include "controller/attach/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "controller/attach/reviewed_access.h"
#include "controller/attach/testing/scene.h"
#include "libs/api/annotations.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/base/time.h"
#include "libs/wire/attach.h"
#include "libs/wire/token.h"

namespace controller {
namespace {

using base::ErrorCode;
using base::Json;
using testing::HasSubstr;
using testing::Not;

// It takes wishes to wake it.
struct WakingStore final : OneSandbox {
  base::Result<base::Done> request_wake(const api::Key&, const api::Expected& expected,
                                        const std::string& value) override {
    if (trouble) return *trouble;
    EXPECT_EQ(expected.uid, "u1");
    wakes.push_back(value);
    sandbox.metadata.annotations[std::string(api::kWakeAnnotation)] = value;
    return base::Done{};
  }
  std::optional<base::Error> trouble;
  std::vector<std::string> wakes;
};

class AttachServiceTest : public testing::Test {
 protected:
  net::ServedAnswer post(const std::string& body,
                         const std::string& authorization = "Bearer c4n4ry") {
    return service_.answer({.method = "POST",
                            .path = std::string(wire::kAttachPath),
                            .body = body,
                            .authorization = authorization,
                            .client = "10.0.0.1"});
  }
  // "403 Denied"
  std::string refusal(const std::string& body, const std::string& authorization = "Bearer c4n4ry") {
    const auto answer = post(body, authorization);
    return std::to_string(answer.status) + " " +
           Json::parse(answer.body).value("reason", "no reason");
  }

  base::FakeClock clock_;
  WakingStore store_;
  Bearer reviewer_;
  ReviewedAccess access_{reviewer_, clock_};
  metrics::Registry registry_{attach_metrics()};
  int ways_asked_ = 0;
  bool stopped_ = false;  // Whoever was asked for the way knows that nobody waits for it.
  std::optional<base::Error> no_way_;
  std::vector<std::string> failed_;  // Whose ways are told not to work.
  AttachService service_{
      {store_, access_, clock_, registry_},
      kFleetKey,
      [this](const api::Sandbox&, std::stop_token stop) -> base::Result<envd::Route> {
        ++ways_asked_;
        stopped_ = stop.stop_requested();
        if (no_way_) return *no_way_;
        return envd::Route{"https://24984-i1.example.dev", {{"E2b-Traffic-Access-Token", "t"}}};
      },
      [this](const api::Sandbox& sandbox) { failed_.push_back(sandbox.metadata.uid); }};
};

constexpr const char* kBox = R"({"namespace":"team-a","name":"box"})";

TEST_F(AttachServiceTest, GivesTheWayInAndATokenForThisRunAlone) {
  const auto answer = post(kBox);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.content_type, "application/json");
  Json told = Json::parse(answer.body);
  const auto token = told["token"].get<std::string>();
  const auto claims =
      wire::verify(token, wire::TokenKind::kAttach,
                   wire::derive_key(kFleetKey, wire::TokenKind::kAttach, "u1", 2), clock_.wall());
  ASSERT_TRUE(claims) << claims.error().message;
  EXPECT_EQ(claims->uid, "u1");
  EXPECT_EQ(claims->epoch, 2);
  EXPECT_EQ(claims->run, 4);
  EXPECT_EQ(claims->subject, "harness");
  EXPECT_EQ(claims->expires - claims->issued, kAttachTokenLife);
  told.erase("token");
  EXPECT_EQ(told, (Json{{"namespace", "team-a"},
                        {"name", "box"},
                        {"uid", "u1"},
                        {"epoch", 2},
                        {"incarnation", 3},
                        {"run", 4},
                        {"sandboxID", "i1"},
                        {"endpoint",
                         {{"url", "https://24984-i1.example.dev"},
                          {"headers", {{"E2b-Traffic-Access-Token", "t"}}}}},
                        {"expires", base::to_rfc3339(clock_.wall() + kAttachTokenLife)}}));
}

TEST_F(AttachServiceTest, RefusesInWordsThatCallersActOn) {
  EXPECT_EQ(refusal("nonsense"), "400 Invalid");
  EXPECT_EQ(refusal("[]"), "400 Invalid");
  EXPECT_EQ(refusal(R"({"namespace":"team-a"})"), "400 Invalid");
  EXPECT_EQ(refusal(R"({"namespace":"","name":"box"})"), "400 Invalid");
  EXPECT_EQ(refusal(R"({"namespace":"team-a","name":")" + std::string(254, 'x') + "\"}"),
            "400 Invalid");
  EXPECT_EQ(refusal(R"({"namespace":"team-a","name":"box","failed":"u1"})"), "400 Invalid");
  EXPECT_EQ(refusal(R"({"namespace":"team-a","name":"box","failed":{"uid":"u1","epoch":2}})"),
            "400 Invalid");
  EXPECT_EQ(refusal(kBox, ""), "403 Denied");
  EXPECT_EQ(refusal(kBox, "Basic c4n4ry"), "403 Denied");
  EXPECT_EQ(refusal(kBox, "Bearer other"), "403 Denied");
  EXPECT_EQ(refusal(kBox, "Bearer away"), "503 Unavailable");
  EXPECT_EQ(refusal(R"({"namespace":"team-a","name":"none"})"), "404 NotFound");
  EXPECT_EQ(refusal(R"({"namespace":"team-b","name":"none"})"), "403 Denied")
      << "who may not attach does not learn what is there";
  store_.sandbox.spec.desired_state = api::DesiredState::kPaused;
  EXPECT_EQ(refusal(kBox), "409 Paused");
  EXPECT_EQ(registry_.counter("sandfleet_attach_requests_total", {"Denied"}).value(), 4);
}

TEST_F(AttachServiceTest, WakesWhatIdlesOnceForAllWhoCome) {
  store_.sandbox.spec.lifecycle.idle = base::Seconds(60);
  store_.sandbox.status.paused_by = api::PausedBy::kIdle;
  EXPECT_EQ(refusal(kBox), "409 Paused");
  store_.sandbox.spec.lifecycle.wake_on_attach = true;
  EXPECT_EQ(refusal(kBox, "Bearer other"), "403 Denied");
  EXPECT_THAT(store_.wakes, testing::IsEmpty()) << "nobody who may not attach wakes it";
  for (int i = 0; i < 3; ++i) {
    const auto answer = post(kBox);
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.retry_after, base::Seconds(1));
    EXPECT_THAT(answer.body, HasSubstr("is being woken"));
  }
  EXPECT_THAT(store_.wakes, testing::ElementsAre(base::to_rfc3339(clock_.wall())));
  EXPECT_EQ(ways_asked_, 0);
}

TEST_F(AttachServiceTest, TellsThatAWishToWakeCannotBeWritten) {
  store_.sandbox.spec.lifecycle = {.idle = base::Seconds(60), .wake_on_attach = true};
  store_.sandbox.status.paused_by = api::PausedBy::kIdle;
  store_.trouble = base::Error{ErrorCode::kConflict, "another wrote it"};
  EXPECT_EQ(refusal(kBox), "503 NotReady") << "a wish of somebody else's, perhaps";
  store_.trouble = base::Error{ErrorCode::kUnavailable, "the disk is full"};
  EXPECT_EQ(refusal(kBox), "503 Unavailable");
}

TEST_F(AttachServiceTest, AsksForTheWayOncePerRun) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(post(kBox).status, 200);
  EXPECT_EQ(ways_asked_, 1);
  ++store_.sandbox.status.run;
  EXPECT_EQ(post(kBox).status, 200);
  EXPECT_EQ(ways_asked_, 2);
  clock_.advance(base::Seconds(61));
  EXPECT_EQ(post(kBox).status, 200);
  EXPECT_EQ(ways_asked_, 3);
}

TEST_F(AttachServiceTest, TellsNowAndThenOfAWayIntoThePresentRunThatFailed) {
  const auto ask = [&](const char* failed, const std::string& authorization = "Bearer c4n4ry") {
    return post(R"({"namespace":"team-a","name":"box","failed":)" + std::string(failed) + "}",
                authorization)
        .status;
  };
  constexpr const char* kThisRun = R"({"uid":"u1","epoch":2,"run":4})";
  EXPECT_EQ(post(kBox).status, 200);
  EXPECT_EQ(ask(R"({"uid":"u0","epoch":2,"run":4})"), 200);
  EXPECT_EQ(ask(R"({"uid":"u1","epoch":1,"run":4})"), 200);
  EXPECT_EQ(ask(R"({"uid":"u1","epoch":2,"run":3})"), 200);
  EXPECT_EQ(ask(kThisRun, "Bearer other"), 403);
  EXPECT_THAT(failed_, testing::IsEmpty());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ask(kThisRun), 200) << "it may be a cut of the network";
  EXPECT_THAT(failed_, testing::ElementsAre("u1"));
  clock_.advance(kFailedToldAgain - base::Milliseconds(1));
  EXPECT_EQ(ask(kThisRun), 200);
  EXPECT_THAT(failed_, testing::SizeIs(1));
  clock_.advance(base::Milliseconds(1));
  EXPECT_EQ(ask(kThisRun), 200);
  EXPECT_THAT(failed_, testing::SizeIs(2));
}

TEST_F(AttachServiceTest, IsUnavailableWhereTheProviderIs) {
  no_way_ = base::Error{ErrorCode::kDenied, "the provider refuses our key"};
  const auto answer = post(kBox);
  EXPECT_EQ(answer.status, 503) << "the caller's right is not in question";
  EXPECT_EQ(answer.retry_after, base::Seconds(1));
  no_way_.reset();
  EXPECT_EQ(post(kBox).status, 200) << "no failure is remembered";
}

TEST_F(AttachServiceTest, HandsOnThatItIsToStop) {
  std::stop_source stop;
  stop.request_stop();
  service_.answer({.method = "POST",
                   .path = std::string(wire::kAttachPath),
                   .body = kBox,
                   .authorization = "Bearer c4n4ry"},
                  stop.get_token());
  EXPECT_TRUE(reviewer_.stopped);
  EXPECT_TRUE(stopped_);
}

TEST_F(AttachServiceTest, TellsWhenToAskAgain) {
  store_.sandbox.status.conditions.clear();
  const auto answer = post(kBox);
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.retry_after, base::Seconds(1));
}

TEST_F(AttachServiceTest, TellsEveryGrantAndNoFloodOfRefusals) {
  const auto lines_of = [&](int count, const std::string& authorization) {
    testing::internal::CaptureStderr();
    for (int i = 0; i < count; ++i) post(kBox, authorization);
    return testing::internal::GetCapturedStderr();
  };
  const auto number_of = [](const std::string& log) {
    return std::count(log.begin(), log.end(), '\n');
  };
  EXPECT_EQ(number_of(lines_of(150, "")), 100);
  EXPECT_EQ(number_of(lines_of(150, "Bearer c4n4ry")), 150);
  clock_.advance(base::Seconds(1));
  EXPECT_THAT(lines_of(1, ""), HasSubstr("refusals_untold=50"));
  EXPECT_THAT(lines_of(1, ""), HasSubstr("refusals_untold=0"));
  EXPECT_EQ(registry_.counter("sandfleet_attach_requests_total", {"Denied"}).value(), 152);
}

// covers: M15
TEST_F(AttachServiceTest, PrintsNoToken) {
  testing::internal::CaptureStderr();
  post(kBox);
  post(kBox, "Bearer c4n4ry-and-more");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("caller=harness"));
  EXPECT_THAT(log, HasSubstr("outcome=Denied"));
  EXPECT_THAT(log, Not(HasSubstr("c4n4ry")));
  EXPECT_THAT(log, Not(HasSubstr("sf1.")));
  EXPECT_THAT(registry_.expose(), Not(HasSubstr("c4n4ry")));
}

}  // namespace
}  // namespace controller
