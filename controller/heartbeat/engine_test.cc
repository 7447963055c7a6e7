#include "controller/heartbeat/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "libs/base/testing/fake_clock.h"

namespace controller {
namespace {

using namespace std::chrono_literals;

// Extends leases as told; nothing else is asked of it here.
class Leases final : public e2b::Cloud {
 public:
  explicit Leases(const base::Clock& clock) : clock_(clock) {}

  base::Result<e2b::Handle, e2b::CreateFailure> create(const e2b::NewSandbox&,
                                                       std::stop_token) override {
    return e2b::CreateFailure{unused(), e2b::CreateFailure::Kind::kNotSent};
  }
  base::Result<e2b::Told<std::optional<e2b::SandboxInfo>>> get(const std::string&,
                                                               std::stop_token) override {
    return unused();
  }
  base::Result<std::optional<e2b::Handle>> handle(const std::string&, std::stop_token) override {
    return unused();
  }
  base::Result<e2b::Told<std::vector<e2b::SandboxInfo>>> list(const e2b::Filter&,
                                                              std::stop_token) override {
    return unused();
  }
  base::Result<e2b::KillAnswer> kill(const std::string&, std::stop_token) override {
    return unused();
  }
  base::Result<e2b::PauseAnswer> pause(const std::string&, std::stop_token) override {
    return unused();
  }
  base::Result<e2b::Connected> connect(const std::string&, base::Seconds,
                                       std::stop_token) override {
    return unused();
  }
  base::Result<base::Done> extend(const std::string&, base::Seconds, std::stop_token) override {
    return unused();
  }
  void start_extend(const std::string& id, base::Seconds timeout,
                    std::function<void(base::Result<base::Done>)> done) override {
    sent.emplace_back(clock_.now(), id);
    if (hold_answers) return held.push_back(std::move(done));
    if (failure) return done(*failure);
    auto& end = ends[id];
    EXPECT_GE(clock_.now() + timeout, end) << "I-EXTEND: a heartbeat never shortens a lease";
    end = clock_.now() + timeout;
    done(base::Done{});
  }
  void start_refresh(const std::string& id, base::Seconds timeout,
                     std::function<void(base::Result<base::Done>)> done) override {
    start_extend(id, timeout, std::move(done));
  }

  std::vector<std::pair<base::Moment, std::string>> sent;
  std::map<std::string, base::Moment> ends;
  std::optional<base::Error> failure;
  bool hold_answers = false;
  std::vector<std::function<void(base::Result<base::Done>)>> held;

 private:
  static base::Error unused() { return {base::ErrorCode::kInvalid, "not asked in this test"}; }
  const base::Clock& clock_;
};

class EngineTest : public testing::Test {
 protected:
  void TearDown() override { leases_->held.clear(); }  // They hold the gate, which holds them.

  Heartbeats::Beat beat(const std::string& name, std::optional<base::Milliseconds> left = {}) {
    return {.uid = name, .id = "sb-" + name, .left = left, .gate = gate_};
  }
  std::unique_ptr<Engine> make(EngineOptions options = {}) {
    return std::make_unique<Engine>(
        clock_, options,
        Engine::News{.sent = [this](auto late) { lateness_.push_back(late); },
                     .missed = [this](const auto& uid) { missed_.push_back(uid); }});
  }
  void run(Engine& engine, base::Milliseconds time, base::Milliseconds tick = 100ms) {
    for (base::Milliseconds past{0}; past < time; past += tick) {
      clock_.advance(tick);
      engine.step();
    }
  }

  base::FakeClock clock_;
  std::shared_ptr<Leases> leases_ = std::make_shared<Leases>(clock_);
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>(leases_, clock_);
  std::vector<base::Milliseconds> lateness_;
  std::vector<std::string> missed_;
};

TEST_F(EngineTest, KeepsTenThousandAliveAndSpreadsThem) {  // I-HB, I-JITTER
  const auto engine = make();
  constexpr std::size_t kCount = 10'000;
  for (std::size_t i = 0; i < kCount; ++i) engine->keep(beat(std::to_string(i), 300s));
  run(*engine, 120s);
  std::map<std::int64_t, std::size_t> per_second;
  for (const auto& [when, id] : leases_->sent) ++per_second[when.time_since_epoch() / 1s];
  const double mean = static_cast<double>(kCount) / 30;
  for (const auto& [second, count] : per_second)
    EXPECT_LE(static_cast<double>(count), 2 * mean) << "in second " << second;
  EXPECT_EQ(leases_->ends.size(), kCount);
  for (const auto& [id, end] : leases_->ends) EXPECT_GT(end - clock_.now(), 269s);
  std::ranges::sort(lateness_);
  EXPECT_LE(lateness_[lateness_.size() * 99 / 100], 100ms);
}

TEST_F(EngineTest, SendsTheMostUrgentFirst) {
  const auto engine = make({.in_flight_max = 1});
  leases_->hold_answers = true;
  engine->keep(beat("calm", 50s));
  engine->keep(beat("urgent", 5s));
  engine->keep(beat("soon", 20s));
  for (int i = 0; i < 3; ++i) {
    clock_.advance(1ms);
    engine->step();
    leases_->held.back()(base::Done{});
  }
  ASSERT_EQ(leases_->sent.size(), 3u);
  EXPECT_EQ(leases_->sent[0].second, "sb-urgent");
  EXPECT_EQ(leases_->sent[1].second, "sb-soon");
  EXPECT_EQ(leases_->sent[2].second, "sb-calm");
}

TEST_F(EngineTest, IsImmuneToTheWallClock) {  // I-MONO
  const auto engine = make();
  engine->keep(beat("a", 300s));
  run(*engine, 60s);
  const auto before = leases_->sent.size();
  clock_.jump_wall(1h);
  engine->step();
  clock_.jump_wall(-2h);
  engine->step();
  EXPECT_EQ(leases_->sent.size(), before);
  run(*engine, 60s);
  EXPECT_GE(leases_->sent.size(), before + 1);
}

TEST_F(EngineTest, OutlastsTenMinutesOf503WithBoundedRetries) {  // I-HBFAIL
  const auto engine = make();
  engine->keep(beat("a", 3'600s));
  leases_->failure = base::Error{base::ErrorCode::kUnavailable, "503"};
  run(*engine, 600s);
  EXPECT_GE(leases_->sent.size(), 20u);
  EXPECT_LE(leases_->sent.size(), 60u);
  EXPECT_TRUE(missed_.empty()) << "a failure is not an absence";
  leases_->failure.reset();
  run(*engine, 31s);
  EXPECT_TRUE(leases_->ends.contains("sb-a"));
}

TEST_F(EngineTest, RetriesAFailureWithinASecond) {
  const auto engine = make();
  engine->keep(beat("a", 10s));
  leases_->failure = base::Error{base::ErrorCode::kUnavailable, "503"};
  engine->step();
  leases_->failure.reset();
  run(*engine, 1s);
  EXPECT_TRUE(leases_->ends.contains("sb-a"));
}

TEST_F(EngineTest, HandsWhatIsNotThereToTheReconciler) {
  const auto engine = make();
  engine->keep(beat("a", 10s));
  leases_->failure = base::Error{base::ErrorCode::kNotFound, "404"};
  engine->step();
  EXPECT_EQ(missed_, std::vector<std::string>{"a"});
}

TEST_F(EngineTest, DropsAndBoundsWhatIsInFlight) {
  const auto engine = make({.in_flight_max = 2});
  leases_->hold_answers = true;
  for (const auto* name : {"a", "b", "c"}) engine->keep(beat(name, 1s));
  engine->step();
  EXPECT_EQ(leases_->sent.size(), 2u);
  EXPECT_EQ(engine->stats().in_flight, 2u);
  for (const auto* name : {"a", "b", "c"}) engine->drop(name);
  for (auto& done : leases_->held) done(base::Done{});
  engine->drain("a");
  run(*engine, 60s);
  EXPECT_EQ(leases_->sent.size(), 2u);
  EXPECT_EQ(engine->stats().kept, 0u);
}

}  // namespace
}  // namespace controller
