#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <string>

#include "libs/base/crypto.h"
#include "libs/e2b/cloud.h"

// What every Cloud promises about its world: FakeCloud keeps it in memory, Client over a real
// server. Include in one test file and instantiate CloudContract.
namespace e2b {

struct CloudWorld {
  virtual ~CloudWorld() = default;
  virtual Cloud& cloud() = 0;
  // Lets time go by until `fact` holds or `patience` is over: a fake moves its clock, a real one
  // looks again.
  virtual bool eventually(const std::function<bool()>& fact, base::Seconds patience) = 0;
  virtual std::string template_id() const { return "base"; }
};

struct CloudKind {
  const char* name;
  std::function<std::unique_ptr<CloudWorld>()> make;
};
inline void PrintTo(const CloudKind& kind, std::ostream* out) { *out << kind.name; }

class CloudContract : public testing::TestWithParam<CloudKind> {
 protected:
  // Whatever a test made goes with it, for a real server outlives the test.
  ~CloudContract() override {
    for (const std::string& id : made_) (void)cloud().kill(id, {});
  }

  Cloud& cloud() { return world_->cloud(); }
  NewSandbox wanted(base::Seconds timeout = base::Seconds(60)) {
    return {.template_id = world_->template_id(),
            .timeout = timeout,
            .metadata = {{"sandfleet.uid", uid_}},
            .idempotency_key = base::random_hex(16)};
  }
  std::string create(const NewSandbox& wanted) {
    const auto made = cloud().create(wanted, {});
    if (!made) {
      ADD_FAILURE() << made.error().message;
      return "";
    }
    made_.push_back(made->id);
    return made->id;
  }
  std::optional<SandboxInfo> get(const std::string& id) {
    const auto seen = cloud().get(id, {});
    if (seen) return seen->value;
    ADD_FAILURE() << seen.error().message;
    return std::nullopt;
  }
  bool is(const std::string& id, State state) {
    const auto info = get(id);
    return info && info->state == state;
  }
  std::vector<SandboxInfo> list(std::map<std::string, std::string> metadata) {
    const auto all = cloud().list({std::move(metadata)}, {});
    if (all) return all->value;
    ADD_FAILURE() << all.error().message;
    return {};
  }

  std::unique_ptr<CloudWorld> world_ = GetParam().make();
  const std::string uid_ = base::random_hex(8);
  std::vector<std::string> made_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CloudContract);

TEST_P(CloudContract, MakesARunningSandboxWithAHandle) {
  const auto made = cloud().create(wanted(), {});
  ASSERT_TRUE(made) << made.error().message;
  made_.push_back(made->id);
  EXPECT_NE(made->id, "");
  EXPECT_NE(made->envd_version, "");
  const auto seen = cloud().get(made->id, {});
  ASSERT_TRUE(seen && seen->value);
  EXPECT_TRUE(seen->provider_time);
  const SandboxInfo& info = *seen->value;
  EXPECT_EQ(info.id, made->id);
  EXPECT_EQ(info.state, State::kRunning);
  EXPECT_EQ(info.metadata.at("sandfleet.uid"), uid_);
  ASSERT_TRUE(info.started_at && info.end_at);
  EXPECT_GT(*info.end_at, *info.started_at);
  EXPECT_GT(*info.end_at, *seen->provider_time + base::Seconds(30));

  const auto again = cloud().handle(made->id, {});
  ASSERT_TRUE(again) << again.error().message;
  if (*again) {
    EXPECT_EQ((*again)->envd_access_token, made->envd_access_token);
  }
}

TEST_P(CloudContract, RefusesAnUnknownTemplateForGood) {
  NewSandbox bad = wanted();
  bad.template_id = "no-such-template";
  const auto made = cloud().create(bad, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, CreateFailure::Kind::kRefused) << made.error().message;
  EXPECT_TRUE(made.error().definite());
}

TEST_P(CloudContract, KnowsNothingOfAStranger) {
  const std::string stranger = "i00000000000000000zz";
  EXPECT_EQ(get(stranger), std::nullopt);
  const auto killed = cloud().kill(stranger, {});
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(*killed, KillAnswer::kNotThere);
  const auto paused = cloud().pause(stranger, {});
  ASSERT_FALSE(paused);
  EXPECT_EQ(paused.error().code, base::ErrorCode::kNotFound);
  const auto connected = cloud().connect(stranger, base::Seconds(30), {});
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code, base::ErrorCode::kNotFound);
  const auto extended = cloud().extend(stranger, base::Seconds(30), {});
  ASSERT_FALSE(extended);
  EXPECT_EQ(extended.error().code, base::ErrorCode::kNotFound);
  const auto handle = cloud().handle(stranger, {});
  ASSERT_FALSE(handle);
  EXPECT_EQ(handle.error().code, base::ErrorCode::kNotFound);
}

TEST_P(CloudContract, AKillIsFinalAndMayBeRepeated) {
  const std::string id = create(wanted());
  const auto first = cloud().kill(id, {});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(*first, KillAnswer::kKilled);
  EXPECT_EQ(get(id), std::nullopt);
  const auto second = cloud().kill(id, {});
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(*second, KillAnswer::kNotThere);
  EXPECT_TRUE(list({{"sandfleet.uid", uid_}}).empty());
}

TEST_P(CloudContract, AKillTakesAPausedOneToo) {
  const std::string id = create(wanted());
  ASSERT_TRUE(cloud().pause(id, {}));
  const auto killed = cloud().kill(id, {});
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(get(id), std::nullopt);
}

TEST_P(CloudContract, PausesOnceAndResumesByConnecting) {
  const std::string id = create(wanted());
  const auto before = get(id);
  const auto first = cloud().pause(id, {});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(*first, PauseAnswer::kPaused);
  EXPECT_TRUE(world_->eventually([&] { return is(id, State::kPaused); }, base::Seconds(20)));
  const auto second = cloud().pause(id, {});
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(*second, PauseAnswer::kAlreadyPaused);
  EXPECT_TRUE(get(id)->end_at);

  const auto connected = cloud().connect(id, base::Seconds(60), {});
  ASSERT_TRUE(connected) << connected.error().message;
  EXPECT_TRUE(connected->resumed);
  EXPECT_EQ(connected->handle.id, id);
  const auto after = get(id);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->state, State::kRunning);
  EXPECT_GE(*after->started_at, *before->started_at);

  const auto again = cloud().connect(id, base::Seconds(60), {});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(again->resumed);
}

TEST_P(CloudContract, ConnectingNeverShortensALease) {
  const std::string id = create(wanted(base::Seconds(600)));
  const auto before = get(id);
  ASSERT_TRUE(cloud().connect(id, base::Seconds(30), {}));
  EXPECT_GE(*get(id)->end_at, *before->end_at - base::Seconds(2));
  ASSERT_TRUE(cloud().connect(id, base::Seconds(900), {}));
  EXPECT_GT(*get(id)->end_at, *before->end_at + base::Seconds(200));
}

TEST_P(CloudContract, ExtendingOnlyLengthens) {
  const std::string id = create(wanted(base::Seconds(120)));
  const auto before = get(id);
  ASSERT_TRUE(cloud().extend(id, base::Seconds(20), {}));
  EXPECT_GE(*get(id)->end_at, *before->end_at - base::Seconds(2));
  ASSERT_TRUE(cloud().extend(id, base::Seconds(600), {}));
  EXPECT_GT(*get(id)->end_at, *before->end_at + base::Seconds(300));
}

TEST_P(CloudContract, ExtendsWithoutBlockingToo) {
  const std::string id = create(wanted(base::Seconds(60)));
  const auto before = get(id);
  std::promise<base::Result<base::Done>> answer;
  cloud().start_extend(id, base::Seconds(600),
                       [&](base::Result<base::Done> result) { answer.set_value(result); });
  auto future = answer.get_future();
  ASSERT_EQ(future.wait_for(base::Seconds(30)), std::future_status::ready);
  EXPECT_TRUE(future.get());
  EXPECT_GT(*get(id)->end_at, *before->end_at + base::Seconds(300));
}

TEST_P(CloudContract, APausedOneCannotBeExtended) {
  const std::string id = create(wanted());
  ASSERT_TRUE(cloud().pause(id, {}));
  const auto extended = cloud().extend(id, base::Seconds(60), {});
  ASSERT_FALSE(extended);
  EXPECT_EQ(extended.error().code, base::ErrorCode::kNotFound);
  EXPECT_TRUE(is(id, State::kPaused));
}

TEST_P(CloudContract, ALeaseThatEndsKills) {
  const std::string id = create(wanted(base::Seconds(1)));
  EXPECT_TRUE(world_->eventually([&] { return !get(id); }, base::Seconds(20)));
}

TEST_P(CloudContract, ALeaseThatEndsPausesWhenAskedTo) {
  NewSandbox pausing = wanted(base::Seconds(1));
  pausing.auto_pause = true;
  const std::string id = create(pausing);
  EXPECT_TRUE(world_->eventually([&] { return is(id, State::kPaused); }, base::Seconds(20)));
  const auto connected = cloud().connect(id, base::Seconds(60), {});
  ASSERT_TRUE(connected) << connected.error().message;
  EXPECT_TRUE(connected->resumed);
}

TEST_P(CloudContract, ListsByMetadataRunningAndPaused) {
  NewSandbox odd = wanted();
  odd.metadata["odd key=&%"] = "v&l=e 100% \xc3\xa4";
  const std::string first = create(odd);
  const std::string second = create(wanted());
  ASSERT_TRUE(cloud().pause(second, {}));
  const auto both = list({{"sandfleet.uid", uid_}});
  ASSERT_EQ(both.size(), 2u);
  for (const SandboxInfo& info : both)
    EXPECT_EQ(info.state, info.id == second ? State::kPaused : State::kRunning);
  const auto one = list({{"sandfleet.uid", uid_}, {"odd key=&%", odd.metadata["odd key=&%"]}});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].id, first);
  EXPECT_EQ(one[0].metadata, odd.metadata);
  EXPECT_TRUE(list({{"sandfleet.uid", uid_}, {"odd key=&%", "other"}}).empty());
}

}  // namespace e2b
