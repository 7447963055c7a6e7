// What a store that dies leaves to the next.

#include <gmock/gmock.h>

#include <functional>

#include "libs/manifests/testing/power_loss.h"
#include "libs/manifests/testing/store_fixture.h"

namespace manifests {
namespace {

using base::ErrorCode;
using ::testing::SizeIs;

// A process that dies before its n-th step on disk, for every n, alone or with the power: what was
// acknowledged is there afterwards, and the same steps taken again end where they would have ended.
class Crash : public Store, public ::testing::WithParamInterface<int> {
 protected:
  struct Step {
    const char* name;
    std::function<base::Result<base::Done>(FileStore&)> take;
  };

  base::Result<base::Done> put_attempt(FileStore& store) {
    const auto found = store.find_sandbox(kA);
    CHECK_OK(store.update_metadata(kA, {found->metadata.uid},
                                   {{std::string(api::kAttemptAnnotation), api::to_text(kAttempt)}},
                                   {std::string(api::kFinalizer)}));
    return base::Done{};
  }
  base::Result<base::Done> bind(FileStore& store) {
    const auto found = store.find_sandbox(kA);
    api::SandboxStatus status;
    status.sandbox_id = "sb-1";
    status.epoch = 1;
    if (found->status == status) return base::Done{};
    CHECK_OK(store.bind(kA, found->metadata.uid, kAttempt, status));
    return base::Done{};
  }
  base::Result<base::Done> end_by_ttl(FileStore& store) {
    const auto found = store.find_sandbox({"default", "c"});
    if (!found) return base::Done{};
    return store.delete_sandbox({"default", "c"}, found->metadata.uid);
  }
  base::Result<base::Done> remove_b(FileStore& store) {
    remove("b.yaml");
    CHECK_OK(store.scan_once());
    clock_.advance(options_.removal_hold);
    return store.scan_once();
  }
  base::Result<base::Done> ask_for_d(FileStore& store) {
    const auto found = store.find_sandbox({"default", "d"});
    if (found) {
      const auto asked = write_request(options_.state, {Request::Kind::kDelete, {"default", "d"}});
      if (!asked) return asked.error();
    }
    return store.scan_once();
  }

  std::vector<Step> steps() {
    return {{"scan", [](FileStore& store) { return store.scan_once(); }},
            {"attempt", [this](FileStore& store) { return put_attempt(store); }},
            {"bind", [this](FileStore& store) { return bind(store); }},
            {"ttl", [this](FileStore& store) { return end_by_ttl(store); }},
            {"remove", [this](FileStore& store) { return remove_b(store); }},
            {"request", [this](FileStore& store) { return ask_for_d(store); }},
            {"release",
             [](FileStore& store) { return store.add_release({"sb-9", "u", "default", "Leave"}); }},
            {"scan again", [](FileStore& store) { return store.scan_once(); }}};
  }

  void start_over() {
    store_.reset();
    fs::remove_all(options_.manifests);
    fs::remove_all(options_.state);
    fs::create_directory(options_.manifests);
    for (const char* name : {"a", "b", "c", "d"})
      write(std::string(name) + ".yaml", sandbox_yaml(name));
  }

  static inline const api::Attempt kAttempt{"0123456789abcdef0123456789abcdef", 1, 0};
};

constexpr int kShards = 8;  // So that each is short.
constexpr int kSeeds = 5;

TEST_P(Crash, LosesNothingThatWasAcknowledged) {
  const auto script = steps();
  for (int run = GetParam();; run += kShards) {
    const int deadly = run / kSeeds;
    const std::uint64_t power_loss = run % kSeeds;  // 0: none.
    SCOPED_TRACE("dies before step " + std::to_string(deadly) + ", power loss " +
                 std::to_string(power_loss));
    start_over();
    PowerLoss power;
    int taken = 0;
    options_.before_step = [&](const fs::path& path, Disk::Step step) -> base::Result<base::Done> {
      if (taken++ >= deadly) return base::error(ErrorCode::kUnavailable, "the process is dead");
      power.before(path, step);
      return base::Done{};
    };
    std::size_t at = 0;
    std::string acknowledged_uid;
    if (auto opened = FileStore::open(options_, clock_)) {
      store_ = *std::move(opened);
      while (at < script.size() && script[at].take(*store_)) {
        if (at == 0) acknowledged_uid = uid();
        ++at;
      }
    }
    const bool died = taken > deadly;
    store_.reset();
    if (power_loss > 0) power.strike(power_loss);
    options_.before_step = {};
    open();
    ASSERT_FALSE(HasFatalFailure());
    if (power_loss > 0 && at == 3) at = 2;  // A bind may be lost, if nothing was written after it.
    if (at > 0) EXPECT_EQ(uid(), acknowledged_uid);
    if (at > 1) EXPECT_EQ(api::attempt_of(store_->find_sandbox(kA)->metadata), kAttempt);
    if (at > 2) EXPECT_EQ(store_->find_sandbox(kA)->status.sandbox_id, "sb-1");
    if (at > 3) EXPECT_EQ(uid("c"), "");
    for (; at < script.size(); ++at) {
      const auto taken = script[at].take(*store_);
      ASSERT_TRUE(taken) << script[at].name << ": " << taken.error().message;
    }
    settle();
    EXPECT_EQ(store_->find_sandbox(kA)->status.sandbox_id, "sb-1");
    EXPECT_THAT(store_->sandboxes(), SizeIs(1));
    EXPECT_THAT(*store_->releases("default"), SizeIs(1));
    EXPECT_FALSE(store_->brake());
    const std::string last = uid();
    store_.reset();
    fs::remove_all(options_.state);
    open();
    scan();
    EXPECT_EQ(uid(), last);  // Its UID was durable outside the state folder all along.
    if (!died) break;
    ASSERT_LT(deadly, 1'000);
  }
}

INSTANTIATE_TEST_SUITE_P(BeforeEachStep, Crash, ::testing::Range(0, kShards));

}  // namespace
}  // namespace manifests
