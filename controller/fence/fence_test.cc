#include "controller/fence/fence.h"

#include <gmock/gmock.h>

#include "libs/base/testing/fake_clock.h"
#include "libs/e2b/testing/fake_cloud.h"

namespace controller {
namespace {

using base::ErrorCode;
using testing::IsEmpty;

class OneMandate final : public Mandate {
 public:
  bool may_act(const std::string& provider) const override { return provider == acts_for; }
  base::Moment since(const std::string&) const override { return {}; }
  std::string acts_for = "default";
};

// An executor that does as told.
class Inside final : public Reach {
 public:
  base::Result<wire::Health> prepare(const Target&, bool, const OnStep&, std::stop_token) override {
    return wire::Health{.instance = "prepared"};
  }
  base::Result<wire::Health> health(const Target&, std::stop_token) override {
    return wire::Health{.instance = "asked"};
  }
  base::Result<wire::Activity> activity(const Target&, std::stop_token) override {
    return wire::Activity{7};
  }
  base::Result<wire::Health> quiesce(const Target&, const wire::Quiesce&,
                                     std::stop_token) override {
    return wire::Health{.instance = "quiesced"};
  }
  base::Result<wire::Health> resumed(const Target&, const wire::Resumed&,
                                     std::stop_token) override {
    return wire::Health{.instance = "resumed"};
  }
};

class FenceTest : public testing::Test {
 protected:
  base::FakeClock clock_;
  std::shared_ptr<e2b::FakeCloud> cloud_ =
      std::make_shared<e2b::FakeCloud>(clock_, e2b::FakeCloud::Callbacks::kByHand);
  OneMandate mandate_;
  const std::shared_ptr<e2b::Cloud> fenced_ = fenced(cloud_, mandate_, "default");
  const std::string id_ = cloud_->plant({.template_id = "base"});
};

TEST_F(FenceTest, LetsAllPassWhileTheMandateLasts) {
  EXPECT_TRUE(fenced_->create({.template_id = "base"}, {}));
  EXPECT_TRUE(fenced_->extend(id_, base::Seconds(60), {}));
  EXPECT_TRUE(fenced_->pause(id_, {}));
  EXPECT_TRUE(fenced_->connect(id_, base::Seconds(60), {}));
  EXPECT_TRUE(fenced_->kill(id_, {}));
}

TEST_F(FenceTest, SendsNothingThatChangesAnythingWithoutTheMandate) {  // I-LEAD
  mandate_.acts_for = "another";
  const auto made = fenced_->create({.template_id = "base"}, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, e2b::CreateFailure::Kind::kNotSent);
  EXPECT_EQ(fenced_->kill(id_, {}).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(fenced_->pause(id_, {}).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(fenced_->connect(id_, base::Seconds(60), {}).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(fenced_->extend(id_, base::Seconds(60), {}).error().message,
            "not sent: this process does not act for default now");
  EXPECT_THAT(cloud_->calls(), IsEmpty());
  EXPECT_TRUE(fenced_->get(id_, {}));
  EXPECT_TRUE(fenced_->list({}, {}));
}

TEST_F(FenceTest, LetsHeartbeatsPassAlsoWithoutTheMandate) {
  mandate_.acts_for = "another";
  int answered = 0;
  fenced_->start_extend(id_, base::Seconds(600), [&](auto result) { answered += result.ok(); });
  cloud_->run_callbacks();
  EXPECT_EQ(answered, 1);
  EXPECT_EQ(cloud_->refreshed(), 1u);
  mandate_.acts_for = "default";
  fenced_->start_extend(id_, base::Seconds(600), [&](auto result) { answered += result.ok(); });
  cloud_->run_callbacks();
  EXPECT_EQ(answered, 2);
  EXPECT_EQ(cloud_->refreshed(), 1u);
}

TEST_F(FenceTest, ReachesInsideOnlyWithTheMandateOfThatProvider) {
  Inside inside;
  FencedReach reach(inside, mandate_);
  const Target ours{.handle = {id_}, .provider_name = "default"};
  const Target theirs{.handle = {id_}, .provider_name = "another"};
  const auto quiet = [](std::string_view) {};
  EXPECT_EQ(reach.prepare(ours, false, quiet, {})->instance, "prepared");
  EXPECT_EQ(reach.health(ours, {})->instance, "asked");
  EXPECT_EQ(reach.activity(ours, {})->idle_ms, 7);
  EXPECT_EQ(reach.quiesce(ours, {}, {})->instance, "quiesced");
  EXPECT_EQ(reach.resumed(ours, {}, {})->instance, "resumed");
  EXPECT_EQ(reach.prepare(theirs, false, quiet, {}).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(reach.health(theirs, {})->instance, "asked") << "a look changes nothing";
  EXPECT_EQ(reach.activity(theirs, {})->idle_ms, 7) << "nor does this one";
  EXPECT_EQ(reach.quiesce(theirs, {}, {}).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(reach.resumed(theirs, {}, {}).error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace controller
