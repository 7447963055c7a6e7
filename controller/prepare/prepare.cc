#include "controller/prepare/prepare.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "controller/prepare/scripts.h"
#include "libs/base/crypto.h"
#include "libs/base/strings.h"
#include "libs/net/transport.h"
#include "libs/wire/proof.h"

namespace controller {
namespace {

using base::ErrorCode;

constexpr base::Milliseconds kScriptTimeout{20'000};
constexpr char kRoot[] = "root";

constexpr std::size_t kToldBytesMax = 4096;  // What an executor says to its starter is less.

bool has_line(std::string_view output, std::string_view line) {
  for (const auto& each : base::split(output, '\n'))
    if (each == line) return true;
  return false;
}

// What came of one start.
struct Start {
  enum class Came {
    kMissing,    // The right one is not there.
    kTaken,      // Another one is at work.
    kGivenKeys,  // It has its keys; whether it answers tells the rest.
    kServing,    // It said that its port is open.
    kPortTaken,  // It had its keys, and ended: somebody else has its port.
    kEnded,      // It had its keys, and ended.
  };
  Came came = Came::kMissing;
  std::string story = {};  // Why it was not heard until it served.
};

class Preparation {
 public:
  Preparation(envd::Sandbox& sandbox, ExecutorDoor& door, const ExecutorFiles& executors,
              const wire::StartSecrets& secrets, const PrepareOptions& options,
              std::stop_token stop)
      : sandbox_(sandbox),
        door_(door),
        executors_(executors),
        secrets_(base::to_text(wire::to_json(secrets)) + "\n"),
        options_(options),
        stop_(std::move(stop)) {}

  base::Result<wire::Health> run(bool replace) {
    if (replace) {
      // Behind an edge that turns us away one may be at work that is not to be ended.
      if (auto answer = ask(); is_turned_away(answer)) return answer;
      options_.on_step("ending the executor that refuses us");
      if (const auto ended = script(kEndAll, {kExecutorPath}, kRoot); !ended)
        return from_envd(ended.error());
    } else if (options_.expected) {
      if (auto answer = ask(); is_heard(answer) || is_turned_away(answer)) return answer;
    }
    auto begun = start();
    if (!begun) begun = look_into(begun.error());
    if (!begun) return from_envd(begun.error());
    if (begun->came == Came::kMissing) {
      // It may be at work all the same, as an older version of itself.
      if (auto answer = ask(); is_heard(answer) || is_turned_away(answer)) return answer;
      if (const auto sent = upload(begun->story); !sent) return from_envd(sent.error());
      begun = start();
      if (!begun) return from_envd(begun.error());
    }
    return wait_for_answer(*begun);
  }

 private:
  using Came = Start::Came;

  static bool is_turned_away(const base::Result<wire::Health>& answer) {
    return !answer && answer.error().code == ErrorCode::kConflict;
  }
  static bool is_heard(const base::Result<wire::Health>& answer) {
    return answer || answer.error().code == ErrorCode::kDenied;
  }

  // Only a refusal from the executor's port is kDenied: envd refuses an old token of the sandbox,
  // and that is no reason to replace an executor.
  static base::Error from_envd(base::Error error) {
    if (error.code == ErrorCode::kDenied) error.code = ErrorCode::kUnavailable;
    return error;
  }

  base::Result<wire::Health> ask() {
    options_.on_step("asking whether an executor answers");
    return door_.health(stop_);
  }

  base::Result<std::string> script(const char* text, std::vector<std::string> arguments,
                                   const std::string& user) {
    envd::Command command{.argv = {"/bin/sh", "-c", text, "sandfleet"}, .user = user};
    for (auto& argument : arguments) command.argv.push_back(std::move(argument));
    TRY(auto finished, sandbox_.run(command, kScriptTimeout, stop_));
    if (finished.exit_code == 0) return std::string(base::trim(finished.output));
    return base::error(ErrorCode::kUnavailable, "a step inside the sandbox ended with ",
                       std::to_string(finished.exit_code), ": ",
                       net::tame(base::trim(finished.error_output)));
  }

  // ---- The start ------------------------------------------------------------------------------

  // The executor begins as the default user and waits for its keys; while it does, root looks at
  // it and makes its place ready. It gets its keys, and is heard until it serves.
  base::Result<Start> start() {
    options_.on_step("starting the executor");
    const envd::Command command{
        .argv = {kExecutorPath, "run", "--runtime-dir", kRuntimeFolder, "--log-file", kLogFile}};
    Start heard;
    bool waits = false, is_other = false;
    until_ = options_.clock.now() + options_.answer_within;
    const auto listener = [&](envd::Started& process) -> base::Result<envd::Next> {
      const std::string& told = process.output();
      if (told.size() > kToldBytesMax || options_.clock.now() > until_)
        return base::error(ErrorCode::kUnavailable, "what was started as the executor talks on");
      if (!waits && has_line(told, wire::kWaitingLine)) {
        waits = true;
        TRY(const bool is_right, lay_out(process.pid()));
        is_other = !is_right;
        if (is_other) return base::error(ErrorCode::kNotFound, "another executor is there");
        CHECK_OK(hand_over(process));
        heard.came = Came::kGivenKeys;
      }
      if (heard.came != Came::kGivenKeys || !has_line(told, wire::kServingLine))
        return envd::Next::kListen;
      heard.came = Came::kServing;
      return envd::Next::kLeave;
    };
    const auto ended = sandbox_.start(command, options_.answer_within, listener, stop_);
    if (!ended) {
      if (!is_other && heard.came != Came::kGivenKeys) return ended.error();
      heard.story = ended.error().message;
    } else if (*ended) {
      judge(**ended, heard);
    }
    return heard;
  }

  static void judge(const envd::Finished& ended, Start& heard) {
    const std::string words = net::tame(base::trim(ended.error_output));
    heard.story =
        "it ended with " + std::to_string(ended.exit_code) + (words.empty() ? "" : ": " + words);
    if (ended.exit_code == wire::kExitTaken)
      heard.came = Came::kTaken;
    else if (heard.came == Came::kGivenKeys)
      heard.came = ended.exit_code == wire::kExitPortTaken ? Came::kPortTaken : Came::kEnded;
  }

  base::Result<bool> lay_out(std::uint32_t pid) {
    options_.on_step("laying out the executor's folder");
    TRY(const std::string verdict,
        script(kLayOut, {std::to_string(pid), kExecutorPath, digests(), kRuntimeFolder}, kRoot));
    if (verdict == "right") return true;
    if (verdict == "other") return false;
    if (verdict != "unknown")
      return base::error(ErrorCode::kUnavailable,
                         "the layout step told nothing of use: ", net::tame(verdict));
    // An image without sha256sum sends the file itself.
    options_.on_step("reading the executor that is there");
    TRY(const std::string content, sandbox_.download(kExecutorPath, kRoot, stop_));
    const std::string digest = base::to_hex(base::sha256(content));
    return std::any_of(executors_.begin(), executors_.end(),
                       [&](const auto& each) { return each.sha256_hex == digest; });
  }

  // Of those at hand: what runs there is for its processor.
  std::string digests() const {
    std::vector<std::string> all;
    for (const auto& each : executors_) all.push_back(each.sha256_hex);
    return base::join(all, " ");
  }

  base::Result<base::Done> hand_over(envd::Started& process) {
    options_.on_step("giving the executor its keys");
    CHECK_OK(process.write(secrets_));
    options_.on_step("waiting for the executor's first answer");
    until_ = options_.clock.now() + options_.answer_within;
    return base::Done{};
  }

  // A start that failed may say little of the way that it took: envd's health says more. Some
  // daemons fail where there is nothing to start.
  base::Result<Start> look_into(const base::Error& error) {
    if (stop_.stop_requested()) return error;
    options_.on_step("asking whether envd is well");
    if (const auto well = sandbox_.health(stop_); !well) return well.error();
    const auto file = sandbox_.stat(kExecutorPath, kRoot, stop_);
    if (file && !*file) return Start{.story = error.message};
    return with_processor(error);
  }

  // What is there and does not start may be for another processor, which its error rarely says.
  base::Error with_processor(base::Error error) {
    if (executors_.empty()) return error;
    const auto machine = script(kMachine, {}, kRoot);
    if (!machine) return error;
    if (const auto chosen = choose(executors_, net::tame(*machine)); !chosen)
      error.message += "; " + chosen.error().message;
    return error;
  }

  // ---- An executor that is not there yet --------------------------------------------------------

  base::Result<base::Done> upload(const std::string& why) {
    if (executors_.empty())
      return base::error(ErrorCode::kInvalid, "the template has no executor that can be used (",
                         why, ") and none is at hand to send: give its file with --executor");
    options_.on_step("asking which processor the sandbox has");
    TRY(const std::string machine, script(kMachine, {}, kRoot));
    TRY(const ExecutorFile* file, choose(executors_, net::tame(machine)));
    options_.on_step("sending the executor");
    const std::string path = kExecutorPath;
    const std::string staged =
        path.substr(0, path.rfind('/')) + "/.executor-" + base::random_hex(8);
    const auto placed = [&]() -> base::Result<base::Done> {
      CHECK_OK(sandbox_.upload(staged, file->content, kRoot, stop_));
      CHECK_OK(script(kPutInPlace, {staged, path, file->sha256_hex}, kRoot));
      return base::Done{};
    }();
    // What fails here is swept by the next that is put in place.
    if (!placed) (void)script(kDiscard, {staged}, kRoot);
    return placed;
  }

  // ---- Its first answer -------------------------------------------------------------------------

  base::Result<wire::Health> wait_for_answer(const Start& begun) {
    if (begun.came == Came::kMissing || begun.came == Came::kEnded)
      return never_answered(begun.story);
    if (begun.came == Came::kTaken) {
      options_.on_step("waiting for the executor that is at work");
      until_ = options_.clock.now() + options_.answer_within;
    }
    base::Milliseconds pause = options_.ask_first;
    for (;;) {
      auto answer = door_.health(stop_);
      if (!answer && is_heard(answer) && !begun.story.empty())
        return base::error(ErrorCode::kDenied, answer.error().message,
                           "; of the one started: ", begun.story);
      if (is_heard(answer) || is_turned_away(answer) || stop_.stop_requested()) return answer;
      if (begun.came == Came::kPortTaken) return never_answered(begun.story);
      if (options_.clock.now() >= until_) return never_answered(answer.error().message);
      options_.rest(pause);
      pause = std::min(pause * 2, options_.ask_every);
    }
  }

  base::Error never_answered(const std::string& why) {
    options_.on_step("reading the executor's log");
    const auto log = script(kLastWords, {kLogFile}, "");
    return base::error(ErrorCode::kUnavailable, "the executor was started and does not answer (",
                       why, "); its log ends: ", log ? net::tame(*log) : "");
  }

  envd::Sandbox& sandbox_;
  ExecutorDoor& door_;
  const ExecutorFiles& executors_;
  const std::string secrets_;  // One line, as it is written to the executor's stdin.
  const PrepareOptions& options_;
  const std::stop_token stop_;
  base::Moment until_ = {};  // What is waited for now must have come by then.
};

}  // namespace

base::Result<wire::Health> bring_to_life(envd::Sandbox& sandbox, ExecutorDoor& door,
                                         const ExecutorFiles& executors,
                                         const wire::StartSecrets& secrets, bool replace,
                                         const PrepareOptions& options, std::stop_token stop) {
  return Preparation(sandbox, door, executors, secrets, options, stop).run(replace);
}

}  // namespace controller
