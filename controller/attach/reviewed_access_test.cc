#include "controller/attach/reviewed_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "libs/base/testing/fake_clock.h"
#include "libs/wire/attach.h"

namespace controller {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using testing::HasSubstr;

const api::Key kBox{"team-a", "box"};

// Knows one token, and lets its bearer at one Sandbox.
struct OneCaller final : Reviewer {
  base::Result<Caller> identify(const std::string& token, std::stop_token) override {
    ++questions;
    if (away) return base::Error{ErrorCode::kUnavailable, "away"};
    if (token != "good") return base::Error{ErrorCode::kDenied, "not valid"};
    return Caller{.name = "harness"};
  }
  base::Result<base::Done> allow(const Caller&, const api::Key& sandbox, std::stop_token) override {
    if (sandbox != kBox) return base::Error{ErrorCode::kDenied, "may not"};
    return base::Done{};
  }
  std::atomic<int> questions = 0;
  bool away = false;
};

class ReviewedAccessTest : public testing::Test {
 protected:
  ErrorCode refusal(const std::string& token, const api::Key& key = kBox,
                    const std::string& client = "10.0.0.1") {
    const auto admitted = access_.admit({client, token}, key, {});
    EXPECT_FALSE(admitted);
    return admitted ? ErrorCode::kInvalid : admitted.error().code;
  }

  base::FakeClock clock_;
  OneCaller reviewer_;
  ReviewedAccess access_{reviewer_,
                         clock_,
                         {.remembered = 10s,
                          .refusal_remembered = 3s,
                          .remembered_max = 3,
                          .each = {4, 1s},
                          .all = {6, 1s},
                          .clients_max = 8}};
};

TEST_F(ReviewedAccessTest, IsTheApiServersWordForAShortTime) {
  EXPECT_EQ(*access_.admit({"10.0.0.1", "good"}, kBox, {}), "harness");
  EXPECT_TRUE(access_.admit({"10.0.0.1", "good"}, kBox, {}));
  EXPECT_EQ(reviewer_.questions, 1);
  clock_.advance(10s);
  EXPECT_TRUE(access_.admit({"10.0.0.1", "good"}, kBox, {}));
  EXPECT_EQ(reviewer_.questions, 2) << "a right may have been taken away";
}

TEST_F(ReviewedAccessTest, IsForOneTokenAndOneSandbox) {
  EXPECT_TRUE(access_.admit({"10.0.0.1", "good"}, kBox, {}));
  EXPECT_EQ(refusal("good", {"team-a", "other"}), ErrorCode::kDenied);
  EXPECT_EQ(refusal("bad"), ErrorCode::kDenied);
  EXPECT_EQ(refusal("bad"), ErrorCode::kDenied);
  EXPECT_EQ(reviewer_.questions, 3) << "a refusal is remembered too";
  clock_.advance(3s);
  EXPECT_EQ(refusal("bad"), ErrorCode::kDenied);
  EXPECT_EQ(reviewer_.questions, 4) << "but not for long";
}

TEST_F(ReviewedAccessTest, RemembersNoSilence) {
  reviewer_.away = true;
  EXPECT_EQ(refusal("good"), ErrorCode::kUnavailable);
  reviewer_.away = false;
  EXPECT_TRUE(access_.admit({"10.0.0.1", "good"}, kBox, {}));
}

TEST_F(ReviewedAccessTest, AsksNothingAboutWhatIsNoToken) {
  EXPECT_EQ(refusal(""), ErrorCode::kDenied);
  EXPECT_EQ(refusal(std::string(wire::kHarnessTokenBytesMax + 1, 'x')), ErrorCode::kDenied);
  EXPECT_EQ(reviewer_.questions, 0);
}

TEST_F(ReviewedAccessTest, HoldsAFloodBackBeforeTheApiServerSeesIt) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(refusal("bad" + std::to_string(i)), ErrorCode::kDenied);
  const auto held = access_.admit({"10.0.0.1", "bad again"}, kBox, {});
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, ErrorCode::kRateLimited);
  EXPECT_THAT(held.error().message, HasSubstr("from 10.0.0.1"));
  EXPECT_EQ(held.error().retry_after, 1s);
  EXPECT_EQ(refusal("bad", kBox, "10.0.0.2"), ErrorCode::kDenied) << "others are heard";
  EXPECT_EQ(refusal("worse", kBox, "10.0.0.3"), ErrorCode::kDenied);
  EXPECT_EQ(refusal("more", kBox, "10.0.0.4"), ErrorCode::kRateLimited) << "as far as all may ask";
  EXPECT_EQ(reviewer_.questions, 6);
  clock_.advance(1s);
  EXPECT_EQ(refusal("bad again"), ErrorCode::kDenied);
}

TEST_F(ReviewedAccessTest, RemembersABoundedNumberOfDecisions) {
  for (const char* name : {"a", "b", "c"}) refusal("good", {"team-a", name});
  EXPECT_TRUE(access_.admit({"10.0.0.2", "good"}, kBox, {}));  // Holds longer than the refusals.
  EXPECT_EQ(reviewer_.questions, 4);
  refusal("good", {"team-a", "c"});
  EXPECT_EQ(reviewer_.questions, 4);
  refusal("good", {"team-a", "a"});
  EXPECT_EQ(reviewer_.questions, 5) << "what would be forgotten first had made room";
}

TEST_F(ReviewedAccessTest, MayBeAskedFromManyThreads) {
  std::vector<std::jthread> threads;
  threads.reserve(8);
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 50; ++j) (void)access_.admit({"10.0.0.1", "good"}, kBox, {});
    });
  threads.clear();
  EXPECT_TRUE(access_.admit({"10.0.0.1", "good"}, kBox, {}));
}

}  // namespace
}  // namespace controller
