#include "controller/prepare/prepare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <vector>

#include "libs/base/crypto.h"
#include "libs/base/testing/fake_clock.h"

namespace controller {
namespace {

// Whether a shell would take the script.
bool parses(const std::string& script) {
  FILE* shell = ::popen("sh -n", "w");
  if (!shell) return false;
  const bool given = std::fputs(script.c_str(), shell) >= 0;
  return ::pclose(shell) == 0 && given;
}

// The inside of a sandbox, as far as preparation touches it: files, one executor, a script runner
// that knows our scripts by what they do. It can die before any of its steps.
class FakeInside final : public envd::Sandbox {
 public:
  base::Result<base::Done> health(std::stop_token) override {
    if (is_shut_off) return base::error(base::ErrorCode::kDenied, "403: no traffic token");
    if (!step()) return gone();
    return base::Done{};
  }
  base::Result<std::optional<envd::Entry>> stat(const std::string&, const std::string&,
                                                std::stop_token) override {
    return std::optional<envd::Entry>();
  }
  base::Result<base::Done> make_folder(const std::string&, const std::string&,
                                       std::stop_token) override {
    return base::Done{};
  }
  base::Result<base::Done> move(const std::string& from, const std::string& to,
                                const std::string& user, std::stop_token) override {
    if (!step()) return gone();
    EXPECT_EQ(user, "root");
    EXPECT_TRUE(executable.contains(from)) << "it must be executable before it gets its name";
    files[to] = files.at(from);
    files.erase(from);
    return base::Done{};
  }
  base::Result<base::Done> remove(const std::string&, const std::string&,
                                  std::stop_token) override {
    return base::Done{};
  }
  base::Result<base::Done> upload(const std::string& path, std::string_view content,
                                  const std::string& user, std::stop_token) override {
    if (!step()) return gone();
    EXPECT_EQ(user, "root") << "the binary must not be the default user's to change";
    files[path] = std::string(content);
    ++uploads;
    return base::Done{};
  }
  base::Result<std::string> download(const std::string& path, const std::string&,
                                     std::stop_token) override {
    if (!files.contains(path)) return base::error(base::ErrorCode::kNotFound, path);
    return files.at(path);
  }
  base::Result<envd::Finished> run(const envd::Command& command, base::Milliseconds,
                                   std::stop_token) override {
    if (!step()) return gone();
    if (turns_away) return base::error(base::ErrorCode::kDenied, "401: an old token");
    const std::string& text = command.argv.at(2);
    EXPECT_TRUE(parses(text)) << text;
    if (text.starts_with("id ")) return envd::Finished{.output = "1000\n1000\n"};
    EXPECT_EQ(command.user, "root");
    if (text.starts_with("chmod 0755")) executable.insert({command.argv.at(4), true});
    if (text.find("kill -9") != text.npos) running = false;
    if (text.starts_with("set -eu")) {
      if (runtime_is_link)
        return envd::Finished{.exit_code = 70, .error_output = "not a real folder"};
      return envd::Finished{.output = "\n" + digest() + "\n"};
    }
    return envd::Finished{};
  }
  base::Result<std::uint32_t> start(const envd::Command& command, std::string_view input,
                                    std::stop_token) override {
    if (!step()) return gone();
    EXPECT_EQ(command.user, "");
    EXPECT_TRUE(parses(command.argv.at(2))) << command.argv.at(2);
    for (const auto& argument : command.argv)
      EXPECT_EQ(argument.find("6b6b"), argument.npos) << "keys travel on stdin only";
    EXPECT_NE(input.find("6b6b"), input.npos);
    ++starts;
    running = files.contains(kExecutorPath) && !starts_in_vain;
    refuses = false;
    return 77u;
  }
  base::Result<wire::Health> health_answer() {
    if (edge_refuses) return base::error(base::ErrorCode::kConflict, "no traffic token");
    if (!running) return base::error(base::ErrorCode::kUnavailable, "nobody listens");
    if (refuses) return base::error(base::ErrorCode::kDenied, "wrong token");
    return wire::Health{.instance = "i-1"};
  }

  // Which file it holds, as sha256sum tells.
  std::string digest() const {
    const auto found = files.find(kExecutorPath);
    if (found == files.end()) return "none";
    if (no_sha256sum) return "unknown";
    return base::to_hex(base::sha256(found->second)) + "  " + kExecutorPath;
  }
  bool step() { return die_before < 0 || die_before-- > 0; }
  static base::Error gone() { return {base::ErrorCode::kUnavailable, "connection lost"}; }

  std::map<std::string, std::string> files;
  std::map<std::string, bool> executable;
  bool running = false, refuses = false, runtime_is_link = false, no_sha256sum = false;
  bool turns_away = false;    // By envd.
  bool is_shut_off = false;   // By an edge, envd's health too.
  bool edge_refuses = false;  // On the way to the executor.
  bool starts_in_vain = false;
  int uploads = 0, starts = 0, die_before = -1;
};

class Door final : public ExecutorDoor {
 public:
  explicit Door(FakeInside& inside) : inside_(inside) {}
  base::Result<wire::Health> health(std::stop_token) override { return inside_.health_answer(); }
  base::Result<wire::Health> quiesce(const wire::Quiesce&, std::stop_token) override {
    return inside_.health_answer();
  }
  base::Result<wire::Health> resumed(const wire::Resumed&, std::stop_token) override {
    return inside_.health_answer();
  }

 private:
  FakeInside& inside_;
};

class Prepare : public testing::Test {
 protected:
  base::Result<wire::Health> prepare(bool replace = false) {
    Door door(inside_);
    return bring_to_life(inside_, door, file_, {"uid-1", 1, "aa", "kk"}, replace, options(), {});
  }
  PrepareOptions options() {
    return {.clock = clock_,
            .rest =
                [this](auto pause) {
                  clock_.advance(pause);
                  pauses_.push_back(pause);
                },
            .on_step = [this](std::string_view step) { steps_.emplace_back(step); }};
  }
  const std::string content_ = "the executor";
  const ExecutorFile file_{content_, base::to_hex(base::sha256(content_))};
  base::FakeClock clock_;
  std::vector<base::Milliseconds> pauses_;
  std::vector<std::string> steps_;
  FakeInside inside_;
};

TEST_F(Prepare, UploadsWhereTheTemplateHasNone) {
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.uploads, 1);
  EXPECT_EQ(inside_.files.at(kExecutorPath), content_);
}

TEST_F(Prepare, TakesTheOneThatIsBakedIn) {
  inside_.files[kExecutorPath] = content_;
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.uploads, 0);
  EXPECT_EQ(inside_.starts, 1);
}

TEST_F(Prepare, ReplacesAnotherVersion) {
  inside_.files[kExecutorPath] = "an older one";
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.files.at(kExecutorPath), content_);
}

TEST_F(Prepare, ComparesTheFileItselfWithoutSha256sum) {
  inside_.files[kExecutorPath] = content_;
  inside_.no_sha256sum = true;
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.uploads, 0);
}

TEST_F(Prepare, LeavesAnExecutorThatAnswersAlone) {
  inside_.files[kExecutorPath] = content_;
  inside_.running = true;
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.starts, 0);
}

TEST_F(Prepare, ReportsOneThatRefusesAndReplacesItWhenTold) {
  inside_.files[kExecutorPath] = content_;
  inside_.running = inside_.refuses = true;
  EXPECT_EQ(prepare().error().code, base::ErrorCode::kDenied);
  EXPECT_EQ(inside_.starts, 0);
  EXPECT_TRUE(prepare(true));
  EXPECT_EQ(inside_.starts, 1);
}

TEST_F(Prepare, DoesNotTakeEnvdsRefusalForTheExecutors) {
  inside_.turns_away = true;
  EXPECT_EQ(prepare().error().code, base::ErrorCode::kUnavailable);
}

TEST_F(Prepare, DoesNotTakeAnEdgesRefusalOnTheWayToEnvdForTheExecutors) {
  inside_.is_shut_off = true;
  EXPECT_EQ(prepare().error().code, base::ErrorCode::kUnavailable);
}

TEST_F(Prepare, TouchesNoExecutorBehindAnEdgeThatTurnsItAway) {
  inside_.files[kExecutorPath] = "an older one";
  inside_.running = inside_.edge_refuses = true;
  for (const bool replace : {false, true})
    EXPECT_EQ(prepare(replace).error().code, base::ErrorCode::kConflict);
  EXPECT_EQ(inside_.uploads + inside_.starts, 0);
  inside_.edge_refuses = false;
  EXPECT_TRUE(prepare());
}

TEST_F(Prepare, RefusesARuntimeFolderThatIsALink) {
  inside_.runtime_is_link = true;
  const auto health = prepare();
  ASSERT_FALSE(health);
  EXPECT_NE(health.error().message.find("not a real folder"), std::string::npos);
}

// A door behind which nobody answers, each time only after `takes`; from `answers_at` on somebody
// does.
class SlowDoor final : public ExecutorDoor {
 public:
  explicit SlowDoor(base::FakeClock& clock, base::Milliseconds takes = {})
      : clock_(clock), takes_(takes) {}
  base::Result<wire::Health> health(std::stop_token) override {
    clock_.advance(takes_);
    ++asks;
    if (clock_.now() < answers_at) return FakeInside::gone();
    return wire::Health{.instance = "i-1"};
  }
  base::Result<wire::Health> quiesce(const wire::Quiesce&, std::stop_token) override {
    return FakeInside::gone();
  }
  base::Result<wire::Health> resumed(const wire::Resumed&, std::stop_token) override {
    return FakeInside::gone();
  }
  base::Moment answers_at = base::Moment::max();
  int asks = 0;

 private:
  base::FakeClock& clock_;
  const base::Milliseconds takes_;
};

TEST_F(Prepare, SaysWhatTheLogEndsWithWhenNobodyAnswers) {
  inside_.files[std::string(kRuntimeFolder) + "/executor.log"] = "cannot bind";
  inside_.files[kExecutorPath] = content_;
  SlowDoor mute(clock_);
  const auto health =
      bring_to_life(inside_, mute, file_, {"uid-1", 1, "aa", "kk"}, false, options(), {});
  ASSERT_FALSE(health);
  EXPECT_NE(health.error().message.find("cannot bind"), std::string::npos);
}

TEST_F(Prepare, AsksSoonAtFirstThenLessOften) {
  inside_.files[kExecutorPath] = content_;
  inside_.starts_in_vain = true;
  EXPECT_FALSE(prepare());
  ASSERT_FALSE(pauses_.empty());
  EXPECT_EQ(pauses_.front(), base::Milliseconds(2));
  EXPECT_EQ(pauses_.back(), base::Milliseconds(20));
  EXPECT_TRUE(std::ranges::is_sorted(pauses_));
  const auto waited = std::accumulate(pauses_.begin(), pauses_.end(), base::Milliseconds(0));
  EXPECT_GE(waited, options().answer_within);
  EXPECT_LT(waited, options().answer_within + base::Milliseconds(20));
}

TEST_F(Prepare, GivesUpInTimeHoweverLongEachAskTakes) {
  inside_.files[kExecutorPath] = content_;
  SlowDoor hanging(clock_, base::Seconds(10));
  EXPECT_FALSE(
      bring_to_life(inside_, hanging, file_, {"uid-1", 1, "aa", "kk"}, false, options(), {}));
  EXPECT_EQ(hanging.asks, 3) << "one before the start, and two within 15 s after it";
}

TEST_F(Prepare, TakesTheAnswerThatTheLastAskBrings) {
  inside_.files[kExecutorPath] = content_;
  SlowDoor late(clock_, base::Seconds(10));
  late.answers_at = clock_.now() + base::Seconds(30);
  EXPECT_TRUE(bring_to_life(inside_, late, file_, {"uid-1", 1, "aa", "kk"}, false, options(), {}));
}

TEST_F(Prepare, NamesEachStepAsItBegins) {
  EXPECT_TRUE(prepare());
  EXPECT_EQ(steps_, (std::vector<std::string>{
                        "asking whether envd is well", "asking whether an executor answers",
                        "asking who the default user is", "laying out the executor's folder",
                        "sending the executor", "starting the executor",
                        "waiting for the executor's first answer"}));
}

TEST_F(Prepare, CanBeRepeatedAfterACutAtAnyStep) {
  for (int step = 0; step < 8; ++step) {
    inside_ = FakeInside{};
    inside_.die_before = step;
    (void)prepare();
    inside_.die_before = -1;
    EXPECT_TRUE(prepare()) << "after a cut before step " << step;
    EXPECT_EQ(inside_.files.at(kExecutorPath), content_);
  }
}

}  // namespace
}  // namespace controller
