#include <gtest/gtest.h>

#include <deque>

#include "controller/reconcile/reconciler.h"
#include "libs/api/testing/one_sandbox.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/e2b/testing/fake_cloud.h"

// A bind that the store refuses: what was made is ended only when an uncached look says that it is
// nobody's, and no worker waits for that.
namespace controller {
namespace {

const api::Attempt kOurs{"0123456789abcdef0123456789abcdef", 1, 0};
const api::Attempt kAnothers{"fedcba9876543210fedcba9876543210", 2, 0};

// Its mirror is behind what it has.
class StaleStore final : public api::OneSandbox {
 public:
  StaleStore() {
    sandbox.metadata.finalizers = {std::string(api::kFinalizer)};
    sandbox.status = {};
    record(sandbox, kOurs);
    truth = sandbox;
  }
  static void record(api::Sandbox& sandbox, const api::Attempt& attempt) {
    sandbox.metadata.annotations[std::string(api::kAttemptAnnotation)] = api::to_text(attempt);
  }
  base::Result<std::optional<api::Sandbox>> get_sandbox(const api::Key&) override { return truth; }
  base::Result<api::Sandbox> bind(const api::Key&, const std::string&, const api::Attempt&,
                                  const api::SandboxStatus&) override {
    return base::error(base::ErrorCode::kConflict, "it has another attempt on record");
  }

  std::optional<api::Sandbox> truth;
};

class Waiting final : public Operations {
 public:
  bool start(Operation operation) override {
    line.push_back(std::move(operation));
    return true;
  }
  std::optional<std::string> running(const std::string&) const override {
    return line.empty() ? std::nullopt : std::optional(line.front().name);
  }
  void run_all() {
    for (; !line.empty(); line.pop_front()) line.front().work({});
  }
  std::deque<Operation> line;
};

struct NoHeartbeats final : Heartbeats {
  void keep(const Beat&) override {}
  void drop(const std::string&) override {}
  void drain(const std::string&) override {}
};

struct NoReach final : Reach {
  static base::Error no() { return {base::ErrorCode::kUnavailable, "not asked for"}; }
  base::Result<wire::Health> prepare(const Target&, bool, const OnStep&, std::stop_token) override {
    return no();
  }
  base::Result<wire::Health> health(const Target&, std::stop_token) override { return no(); }
  base::Result<wire::Activity> activity(const Target&, std::stop_token) override { return no(); }
  base::Result<wire::Health> quiesce(const Target&, const wire::Quiesce&,
                                     std::stop_token) override {
    return no();
  }
  base::Result<wire::Health> resumed(const Target&, const wire::Resumed&,
                                     std::stop_token) override {
    return no();
  }
};

class BindTest : public testing::Test, public Providers {
 protected:
  BindTest() {
    const std::string uid = store_.sandbox.metadata.uid;
    id_ = cloud_->plant({.template_id = "base", .metadata = {{key::kUid, uid}}});
    memories_.update(uid, [&](Memory& memory) {
      memory.recorded_nonce = kOurs.nonce;
      memory.sent = Sent{.attempt = kOurs, .id = id_};
    });
  }
  base::Result<Session, ProviderProblem> session(const std::string&) override {
    return Session{std::make_shared<const api::SandboxProvider>(), gate_};
  }
  kube::Requeue turn() { return reconciler_.reconcile(store_.sandbox.metadata.key); }
  bool lives() { return cloud_->find(id_).has_value(); }

  base::FakeClock clock_;
  StaleStore store_;
  std::shared_ptr<e2b::FakeCloud> cloud_ = std::make_shared<e2b::FakeCloud>(clock_);
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>(cloud_, clock_);
  std::string id_;
  Waiting operations_;
  NoHeartbeats heartbeats_;
  NoReach reach_;
  Memories memories_;
  const SoleMandate mandate_{clock_};
  Observer observer_;
  Reconciler reconciler_{
      {store_, *this, operations_, heartbeats_, reach_, memories_, mandate_, clock_, observer_}};
};

TEST_F(BindTest, EndsWhatIsNobodysBesideTheWorkers) {  // I-BIND
  StaleStore::record(*store_.truth, kAnothers);
  turn();
  EXPECT_TRUE(lives()) << "whoever hangs there must not be a worker";
  ASSERT_EQ(operations_.line.size(), 1u);
  EXPECT_EQ(operations_.line[0].line, Operation::Line::kBounded);
  operations_.run_all();
  EXPECT_FALSE(lives());
}

TEST_F(BindTest, EndsWhatWasMadeForAnObjectThatIsGone) {  // I-BIND
  store_.truth.reset();
  turn();
  operations_.run_all();
  EXPECT_FALSE(lives());
}

TEST_F(BindTest, SparesWhatWasTakenUpMeanwhile) {
  StaleStore::record(*store_.truth, kAnothers);
  turn();
  store_.truth = store_.sandbox;
  store_.truth->status.sandbox_id = id_;
  operations_.run_all();
  EXPECT_TRUE(lives());
}

TEST_F(BindTest, TriesAgainWhileItIsItsOwn) {
  EXPECT_TRUE(turn().failed);
  EXPECT_TRUE(operations_.line.empty());
  EXPECT_TRUE(lives());
}

TEST_F(BindTest, WaitsOutAKillThatFailed) {
  StaleStore::record(*store_.truth, kAnothers);
  cloud_->script(e2b::Operation::kKill, {e2b::Fault::Kind::kFailed500});
  turn();
  operations_.run_all();
  turn();
  EXPECT_TRUE(operations_.line.empty()) << "its delay is not over";
  clock_.advance(base::Seconds(2));
  turn();
  operations_.run_all();
  EXPECT_FALSE(lives());
}

}  // namespace
}  // namespace controller
