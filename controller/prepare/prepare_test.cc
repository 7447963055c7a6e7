#include "controller/prepare/prepare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "controller/prepare/scripts.h"
#include "controller/prepare/testing/proven.h"
#include "libs/base/crypto.h"
#include "libs/base/strings.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/net/testing/fake_transport.h"

namespace controller {
namespace {

using base::Done;
using base::ErrorCode;
using base::Result;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kKey[] = "6b6b";  // "kk", as it is written to the executor.

// Who answers on the executor's port while the one that was started has not got it.
enum class OnItsPort { kNobody, kImpostor, kOurs };

// The inside of a sandbox, as far as preparation touches it: files, one executor, and a root that
// knows our scripts. Whoever prepares can die before any of its calls.
class Inside final : public envd::Sandbox {
 public:
  explicit Inside(base::FakeClock& clock) : clock_(clock) {}

  Result<Done> health(std::stop_token) override {
    ++calls;
    if (is_shut_off) return base::error(ErrorCode::kDenied, "403: no traffic token");
    if (is_away) return base::error(ErrorCode::kUnavailable, "health of envd: nobody is there");
    return Done{};
  }
  Result<std::optional<envd::Entry>> stat(const std::string& path, const std::string&,
                                          std::stop_token) override {
    ++calls;
    if (!files.contains(path)) return std::optional<envd::Entry>();
    return std::optional(envd::Entry{.path = path});
  }
  Result<Done> upload(const std::string& path, std::string_view content, const std::string& user,
                      std::stop_token) override {
    if (!goes_through()) return gone();
    EXPECT_EQ(user, "root") << "the binary must not be the default user's to change";
    if (loses_uploads) {
      files[path] = std::string(content.substr(0, content.size() / 2));
      return gone();
    }
    files[path] = std::string(content);
    ++uploads;
    return Done{};
  }
  Result<std::string> download(const std::string& path, const std::string& user,
                               std::stop_token) override {
    if (!goes_through()) return gone();
    EXPECT_EQ(path, kExecutorPath) << "as root, who follows every link of the default user";
    EXPECT_EQ(user, "root");
    return files.at(path);
  }
  Result<envd::Finished> run(const envd::Command& command, base::Milliseconds,
                             std::stop_token) override {
    if (!goes_through()) return gone();
    const std::string& text = command.argv.at(2);
    if (text == kLastWords) {
      EXPECT_EQ(command.user, "") << "the log is the default user's, and may be a link";
      return envd::Finished{.output = log + "\n"};
    }
    EXPECT_EQ(command.user, "root");
    if (text == kMachine) return envd::Finished{.output = machine + "\n"};
    if (text == kEndAll) is_running = false;
    if (text == kLayOut) return lay_out(command);
    if (text == kDiscard) files.erase(command.argv.at(4));
    if (text == kPutInPlace && refuses_to_place) return envd::Finished{.exit_code = 1};
    if (text == kPutInPlace) {
      files[command.argv.at(5)] = files.at(command.argv.at(4));
      files.erase(command.argv.at(4));
    }
    return envd::Finished{};
  }
  Result<std::optional<envd::Finished>> start(const envd::Command& command,
                                              base::Milliseconds silence,
                                              const envd::Listener& listener,
                                              std::stop_token) override {
    if (!goes_through()) return gone();
    if (turns_away) return base::error(ErrorCode::kDenied, "401: an old token");
    EXPECT_EQ(command.user, "");
    EXPECT_EQ(command.argv.front(), kExecutorPath);
    for (const auto& argument : command.argv) EXPECT_THAT(argument, Not(HasSubstr(kKey)));
    if (!files.contains(kExecutorPath)) {
      if (fails_where_nothing_is) return base::error(ErrorCode::kUnavailable, "no such file");
      return ended(127, "not found");
    }
    if (cannot_run) return base::error(ErrorCode::kUnavailable, "exec format error");
    if (does_not_know_us) return ended(2, "--log-file: unknown");
    if (is_running) return ended(wire::kExitTaken, "another is at work");
    return be_heard(silence, listener);
  }

  Result<wire::Health> answer() {
    if (edge_refuses) return base::error(ErrorCode::kConflict, "no traffic token");
    if (on_its_port == OnItsPort::kImpostor)
      return base::error(ErrorCode::kDenied, "another than the executor answered");
    if (on_its_port == OnItsPort::kOurs) return wire::Health{.instance = "i-0"};
    if (!is_running || clock_.now() < serves_at)
      return base::error(ErrorCode::kUnavailable, "nobody listens");
    if (refuses) return base::error(ErrorCode::kDenied, "wrong token");
    return wire::Health{.instance = "i-1"};
  }

  bool goes_through() {
    ++calls;
    return !is_away && (die_before < 0 || die_before-- > 0);
  }
  static base::Error gone() { return {ErrorCode::kUnavailable, "connection lost"}; }

  std::map<std::string, std::string> files;
  std::string log, machine = "aarch64";
  bool cannot_run = false;  // What is there is for another processor.
  bool is_running = false, refuses = false;
  bool runtime_is_link = false, no_sha256sum = false, does_not_know_us = false;
  bool turns_away = false;              // By envd.
  bool is_shut_off = false;             // By an edge, envd's health too.
  bool is_away = false;                 // Nobody answers.
  bool fails_where_nothing_is = false;  // As daemons do that start no shell.
  bool edge_refuses = false;            // On the way to the executor.
  bool loses_uploads = false, refuses_to_place = false;
  bool waits_silently = false, serves_silently = false, talks_on = false;
  std::optional<int> ends_with_keys = {};
  OnItsPort on_its_port = OnItsPort::kNobody;
  base::Moment serves_at = base::Moment::min();
  int calls = 0, uploads = 0, starts = 0, given = 0, killed = 0, die_before = -1;

 private:
  class Waiting final : public envd::Started {
   public:
    explicit Waiting(Inside& inside) : inside_(inside) {}
    std::uint32_t pid() const override { return 77; }
    const std::string& output() const override { return said; }
    Result<Done> write(std::string_view input) override {
      if (!inside_.goes_through()) return gone();
      EXPECT_THAT(std::string(input), HasSubstr(kKey));
      EXPECT_TRUE(input.ends_with("\n"));
      ++inside_.given;
      return Done{};
    }
    std::string said;

   private:
    Inside& inside_;
  };

  static Result<std::optional<envd::Finished>> ended(int code, const std::string& words) {
    return std::optional(envd::Finished{.exit_code = code, .error_output = words});
  }

  envd::Finished lay_out(const envd::Command& command) const {
    EXPECT_EQ(command.argv.at(4), "77") << "whose user is the default user";
    if (runtime_is_link)
      return {.exit_code = 70, .error_output = "/var/lib/sandfleet is not a real folder\n"};
    const std::string& wanted = command.argv.at(6);
    if (no_sha256sum) return {.output = "unknown\n"};
    const std::string digest = base::to_hex(base::sha256(files.at(kExecutorPath)));
    const bool right =
        wanted.empty() || (" " + wanted + " ").find(" " + digest + " ") != wanted.npos;
    return {.output = right ? "right\n" : "other\n"};
  }

  Result<std::optional<envd::Finished>> be_heard(base::Milliseconds silence,
                                                 const envd::Listener& listener) {
    ++starts;
    Waiting process(*this);
    const auto say = [&](const std::string& text) {
      process.said += text;
      auto next = listener(process);
      if (!next) ++killed;
      return next;
    };
    const auto be_silent = [&]() -> Result<std::optional<envd::Finished>> {
      clock_.advance(silence);
      return base::error(ErrorCode::kUnavailable, "silence");
    };
    TRY(envd::Next next, say(""));
    for (int i = 0; talks_on && i < 100'000; ++i) {
      TRY(next, say("blah "));
    }
    if (waits_silently) return be_silent();
    TRY(next, say("waiting\n"));
    EXPECT_EQ(next, envd::Next::kListen);
    if (ends_with_keys) return ended(*ends_with_keys, "");
    is_running = true;
    refuses = false;
    if (serves_silently) return be_silent();
    TRY(next, say("serving\n"));
    EXPECT_EQ(next, envd::Next::kLeave);
    return std::optional<envd::Finished>();
  }

  base::FakeClock& clock_;
};

// The way to it; each ask takes so long.
class Door final : public ExecutorDoor {
 public:
  Door(Inside& inside, base::FakeClock& clock) : inside_(inside), clock_(clock) {}
  Result<wire::Health> health(std::stop_token) override {
    ++inside_.calls;
    ++asks;
    clock_.advance(takes);
    return inside_.answer();
  }
  Result<wire::Activity> activity(std::stop_token) override { return wire::Activity{}; }
  Result<wire::Health> quiesce(const wire::Quiesce&, std::stop_token) override {
    return inside_.answer();
  }
  Result<wire::Health> resumed(const wire::Resumed&, std::stop_token) override {
    return inside_.answer();
  }
  base::Milliseconds takes{0};
  int asks = 0;

 private:
  Inside& inside_;
  base::FakeClock& clock_;
};

class Prepare : public testing::Test {
 protected:
  Result<wire::Health> prepare(bool replace = false) { return prepare_with(files_, replace); }
  Result<wire::Health> prepare_with(const ExecutorFiles& files, bool replace = false) {
    return bring_to_life(inside_, door_, files, {"uid-1", 1, "aa", "kk"}, replace, options(), {});
  }
  Result<wire::Health> prepare_expected() {
    PrepareOptions expecting = options();
    expecting.expected = true;
    return bring_to_life(inside_, door_, files_, {"uid-1", 1, "aa", "kk"}, false, expecting, {});
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
  void bake() { inside_.files[kExecutorPath] = content_; }

  const std::string content_ = "the executor";
  const ExecutorFiles files_ = {as_executor(content_)};
  base::FakeClock clock_;
  std::vector<base::Milliseconds> pauses_;
  std::vector<std::string> steps_;
  Inside inside_{clock_};
  Door door_{inside_, clock_};
};

TEST_F(Prepare, TakesFourCallsWhereTheTemplateHasTheExecutor) {
  bake();
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.calls, 4) << "start, lay out, keys, answer";
  EXPECT_EQ(inside_.uploads, 0);
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(Prepare, AsksOneThatIsExpectedBeforeItStartsAny) {
  bake();
  EXPECT_TRUE(prepare_expected()) << "none is there yet";
  EXPECT_EQ(inside_.calls, 5) << "an ask in vain, then as ever";
  inside_.calls = 0;
  EXPECT_TRUE(prepare_expected());
  EXPECT_EQ(inside_.calls, 1);
  EXPECT_EQ(inside_.starts, 1);
}

TEST_F(Prepare, UploadsWhereTheTemplateHasNone) {
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.uploads, 1);
  EXPECT_EQ(inside_.files, (std::map<std::string, std::string>{{kExecutorPath, content_}}));
}

TEST_F(Prepare, UploadsWhereADaemonFailsToStartWhatIsNotThere) {
  inside_.fails_where_nothing_is = true;
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.uploads, 1);
}

TEST_F(Prepare, LeavesNothingOfAnUploadThatFailed) {
  inside_.loses_uploads = true;
  EXPECT_FALSE(prepare());
  EXPECT_TRUE(inside_.files.empty()) << inside_.files.begin()->first;
  inside_.loses_uploads = false;
  inside_.refuses_to_place = true;
  EXPECT_FALSE(prepare());
  EXPECT_TRUE(inside_.files.empty()) << inside_.files.begin()->first;
}

TEST_F(Prepare, ReplacesAnotherVersionAndGivesItNoKeys) {
  inside_.files[kExecutorPath] = "an older one";
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.files.at(kExecutorPath), content_);
  EXPECT_EQ(inside_.starts, 2);
  EXPECT_EQ(inside_.given, 1);
  EXPECT_EQ(inside_.killed, 1);
}

TEST_F(Prepare, ReplacesOneThatDoesNotKnowHowItIsStarted) {
  bake();
  inside_.does_not_know_us = true;
  EXPECT_FALSE(prepare());
  EXPECT_EQ(inside_.uploads, 1);
}

TEST_F(Prepare, ComparesTheFileItselfWithoutSha256sum) {
  bake();
  inside_.no_sha256sum = true;
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.uploads, 0);
}

TEST_F(Prepare, TakesTheTemplatesExecutorAsItIsWithoutOneToSend) {
  inside_.files[kExecutorPath] = "whichever";
  EXPECT_TRUE(prepare_with({}));
  EXPECT_EQ(inside_.files.at(kExecutorPath), "whichever");
}

TEST_F(Prepare, SaysThatNoneIsAtHandWhereTheTemplateHasNone) {
  const auto health = prepare_with({});
  ASSERT_FALSE(health);
  EXPECT_EQ(health.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(health.error().message, HasSubstr("--executor"));
}

TEST_F(Prepare, SaysForWhichProcessorsTheSandboxAndTheExecutorAre) {
  bake();
  inside_.cannot_run = true;
  ExecutorFiles files = files_;
  files.front().machine = "x86_64";
  const auto health = prepare_with(files);
  ASSERT_FALSE(health);
  EXPECT_THAT(health.error().message,
              HasSubstr("processor is aarch64, and the executor at hand is for x86_64"));
  inside_.machine = "x86_64";
  EXPECT_THAT(prepare_with(files).error().message, Not(HasSubstr("processor")));
}

TEST_F(Prepare, SendsTheExecutorForTheSandboxsProcessor) {
  const std::string other = "the other executor";
  ExecutorFiles files = {files_.front(), as_executor(other)};
  files[0].machine = "x86_64";
  files[1].machine = "aarch64";
  for (const auto& file : files) {
    inside_.files.clear();
    inside_.is_running = false;
    inside_.machine = file.machine;
    EXPECT_TRUE(prepare_with(files)) << file.machine;
    EXPECT_EQ(inside_.files.at(kExecutorPath), file.content);
    inside_.is_running = false;
    EXPECT_TRUE(prepare_with(files)) << "it is the right one from then on";
  }
  EXPECT_EQ(inside_.uploads, 2);
  inside_.is_running = false;
  inside_.no_sha256sum = true;
  EXPECT_TRUE(prepare_with(files));
  EXPECT_EQ(inside_.uploads, 2);
}

TEST_F(Prepare, SendsNothingForAnotherProcessor) {
  inside_.files[kExecutorPath] = "an older one";
  ExecutorFiles files = files_;
  files.front().machine = "x86_64";
  const auto health = prepare_with(files);
  ASSERT_FALSE(health);
  EXPECT_EQ(health.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(health.error().message, HasSubstr("this sandbox's processor is aarch64"));
  EXPECT_EQ(inside_.uploads, 0);
  EXPECT_EQ(inside_.files.at(kExecutorPath), "an older one") << "it may be of use";
}

TEST_F(Prepare, LeavesAnExecutorThatAnswersAlone) {
  bake();
  inside_.is_running = true;
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.starts, 0);
  EXPECT_EQ(inside_.calls, 2);
}

TEST_F(Prepare, LeavesAnOlderExecutorThatAnswersAlone) {
  inside_.files[kExecutorPath] = "an older one";
  inside_.is_running = inside_.does_not_know_us = true;
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.starts + inside_.uploads, 0);
}

TEST_F(Prepare, WaitsForOneThatAnotherHasStarted) {
  bake();
  inside_.is_running = true;
  inside_.serves_at = clock_.now() + base::Seconds(3);
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.starts, 0);
}

TEST_F(Prepare, ReportsOneThatRefusesAndReplacesItWhenTold) {
  bake();
  inside_.is_running = inside_.refuses = true;
  EXPECT_EQ(prepare().error().code, ErrorCode::kDenied);
  EXPECT_EQ(inside_.starts, 0);
  EXPECT_TRUE(prepare(true));
  EXPECT_EQ(inside_.starts, 1);
}

TEST_F(Prepare, ReportsAStrangerThatKeepsItsPort) {
  bake();
  inside_.ends_with_keys = 6;
  const auto silent = prepare();
  EXPECT_EQ(silent.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(silent.error().message, HasSubstr("ended with 6"));
  EXPECT_TRUE(pauses_.empty()) << "one that has ended is not waited for";
}

TEST_F(Prepare, AsksNobodyWhenTheOneThatItStartedHasEnded) {
  bake();
  inside_.ends_with_keys = 1;
  inside_.on_its_port = OnItsPort::kOurs;
  const auto health = prepare();
  ASSERT_FALSE(health);
  EXPECT_THAT(health.error().message, HasSubstr("ended with 1"));
  EXPECT_EQ(door_.asks, 0);
}

TEST_F(Prepare, LeavesOneOfOursAloneThatKeepsThePort) {
  bake();
  inside_.ends_with_keys = wire::kExitPortTaken;
  inside_.on_its_port = OnItsPort::kOurs;
  EXPECT_TRUE(prepare()) << "its lock was removed, say";
}

TEST_F(Prepare, BelievesNoImpostorOnItsPort) {
  bake();
  inside_.on_its_port = OnItsPort::kImpostor;
  inside_.ends_with_keys = wire::kExitPortTaken;
  for (const bool replace : {false, true}) {
    const auto health = prepare(replace);
    ASSERT_FALSE(health);
    EXPECT_EQ(health.error().code, ErrorCode::kDenied);
    EXPECT_THAT(health.error().message,
                testing::AllOf(HasSubstr("another than the executor"), HasSubstr("ended with 6")));
  }
  EXPECT_EQ(prepare_expected().error().code, ErrorCode::kDenied);
  inside_.is_running = true;  // Or something that holds its lock.
  EXPECT_EQ(prepare().error().code, ErrorCode::kDenied);
  EXPECT_TRUE(pauses_.empty());

  inside_.on_its_port = OnItsPort::kNobody;
  inside_.ends_with_keys.reset();
  EXPECT_TRUE(prepare(true));
}

TEST_F(Prepare, BelievesNoImpostorWhateverItProves) {
  bake();
  inside_.ends_with_keys = wire::kExitPortTaken;
  const wire::Health well{.instance = "i", .version = "1", .identity = {"uid-1", 1, 1, 1}};
  const wire::Question before{"a nonce", "GET", "/v1/health", ""};
  const std::pair<const char*, net::Answer> played[] = {
      {"nothing", net::answer(200, base::to_text(wire::to_json(well)))},
      {"a_replay", answer_with_proof(well, "kk", before)},
      {"by_another_key", answer_with_proof(well, "aa", before)},
  };
  for (const auto& [name, answer] : played) {
    net::FakeTransport transport([&](const net::Request&) { return answer; });
    HttpExecutorDoor door(transport, {.url = std::string(kTestRoute)}, "kk", "token");
    const auto health =
        bring_to_life(inside_, door, files_, {"uid-1", 1, "aa", "kk"}, false, options(), {});
    ASSERT_FALSE(health) << name;
    EXPECT_EQ(health.error().code, ErrorCode::kDenied) << name << ": " << health.error().message;
  }
}

TEST_F(Prepare, DoesNotTakeEnvdsRefusalForTheExecutors) {
  bake();
  inside_.turns_away = true;
  EXPECT_EQ(prepare().error().code, ErrorCode::kUnavailable);
}

TEST_F(Prepare, DoesNotTakeAnEdgesRefusalOnTheWayToEnvdForTheExecutors) {
  inside_.is_shut_off = inside_.turns_away = true;
  EXPECT_EQ(prepare().error().code, ErrorCode::kUnavailable);
}

TEST_F(Prepare, SaysOfAWayThatLeadsNowhereWhatEnvdsHealthSays) {
  inside_.is_away = true;
  const auto health = prepare();
  ASSERT_FALSE(health);
  EXPECT_THAT(health.error().message, HasSubstr("health of envd"));
  EXPECT_EQ(inside_.calls, 2);
}

TEST_F(Prepare, TouchesNoExecutorBehindAnEdgeThatTurnsItAway) {
  inside_.files[kExecutorPath] = "an older one";
  inside_.is_running = inside_.edge_refuses = true;
  for (const bool replace : {false, true})
    EXPECT_EQ(prepare(replace).error().code, ErrorCode::kConflict);
  EXPECT_EQ(inside_.uploads + inside_.starts, 0);
  EXPECT_TRUE(inside_.is_running);
  inside_.edge_refuses = false;
  EXPECT_TRUE(prepare());
}

TEST_F(Prepare, RefusesARuntimeFolderThatIsALink) {
  bake();
  inside_.runtime_is_link = true;
  const auto health = prepare();
  ASSERT_FALSE(health);
  EXPECT_THAT(health.error().message, HasSubstr("not a real folder"));
  EXPECT_EQ(inside_.given, 0);
  EXPECT_EQ(inside_.killed, 1) << "what waits for keys is ended";
}

TEST_F(Prepare, SaysWhatTheLogEndsWithWhenNobodyAnswers) {
  bake();
  inside_.ends_with_keys = 6;
  inside_.log = "cannot bind";
  const auto health = prepare();
  ASSERT_FALSE(health);
  EXPECT_THAT(health.error().message, HasSubstr("cannot bind"));
}

TEST_F(Prepare, GivesUpOneThatNeverSaysThatItWaits) {
  bake();
  inside_.waits_silently = true;
  EXPECT_FALSE(prepare());
  EXPECT_EQ(inside_.given, 0);
}

TEST_F(Prepare, ListensToNobodyWhoTalksOn) {
  bake();
  inside_.talks_on = true;
  const auto health = prepare();
  ASSERT_FALSE(health);
  EXPECT_THAT(health.error().message, HasSubstr("talks on"));
  EXPECT_EQ(inside_.killed, 1);
}

TEST_F(Prepare, BelievesAnAnswerWhereServingWasNotHeard) {
  bake();
  inside_.serves_silently = true;
  EXPECT_TRUE(prepare());
  EXPECT_EQ(inside_.starts, 1);
  EXPECT_EQ(inside_.killed, 0);
}

TEST_F(Prepare, AsksSoonAtFirstThenLessOften) {
  bake();
  inside_.is_running = true;
  inside_.serves_at = base::Moment::max();
  EXPECT_FALSE(prepare());
  ASSERT_FALSE(pauses_.empty());
  EXPECT_EQ(pauses_.front(), base::Milliseconds(2));
  EXPECT_EQ(pauses_.back(), base::Milliseconds(250));
  EXPECT_TRUE(std::ranges::is_sorted(pauses_));
  const auto waited = std::accumulate(pauses_.begin(), pauses_.end(), base::Milliseconds(0));
  EXPECT_GE(waited, options().answer_within);
  EXPECT_LT(waited, options().answer_within + base::Milliseconds(250));
}

TEST_F(Prepare, GivesUpInTimeHoweverLongEachAskTakes) {
  bake();
  inside_.is_running = true;
  inside_.serves_at = base::Moment::max();
  door_.takes = base::Seconds(10);
  EXPECT_FALSE(prepare());
  EXPECT_EQ(door_.asks, 2) << "within 15 s";
}

TEST_F(Prepare, TakesTheAnswerThatTheLastAskBrings) {
  bake();
  inside_.is_running = true;
  inside_.serves_at = clock_.now() + base::Seconds(20);
  door_.takes = base::Seconds(10);
  EXPECT_TRUE(prepare());
}

TEST_F(Prepare, NamesEachStepAsItBegins) {
  bake();
  EXPECT_TRUE(prepare());
  EXPECT_THAT(steps_, ElementsAre("starting the executor", "laying out the executor's folder",
                                  "giving the executor its keys",
                                  "waiting for the executor's first answer"));
  steps_.clear();
  inside_.files.clear();
  inside_.is_running = false;
  EXPECT_TRUE(prepare());
  EXPECT_THAT(steps_, ElementsAre("starting the executor", "asking whether an executor answers",
                                  "asking which processor the sandbox has", "sending the executor",
                                  "starting the executor", "laying out the executor's folder",
                                  "giving the executor its keys",
                                  "waiting for the executor's first answer"));
}

TEST_F(Prepare, CanBeRepeatedAfterACutAtAnyStep) {
  for (const bool baked : {false, true})
    for (int step = 0; step < 9; ++step) {
      Inside inside(clock_);
      Door door(inside, clock_);
      if (baked) inside.files[kExecutorPath] = content_;
      const auto prepared = [&] {
        return bring_to_life(inside, door, files_, {"uid-1", 1, "aa", "kk"}, false, options(), {});
      };
      inside.die_before = step;
      (void)prepared();
      inside.die_before = -1;
      EXPECT_TRUE(prepared()) << "after a cut before step " << step;
      EXPECT_EQ(inside.files.at(kExecutorPath), content_);
    }
}

}  // namespace
}  // namespace controller
