#include "controller/prepare/prepare.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "libs/base/crypto.h"
#include "libs/base/strings.h"
#include "libs/net/transport.h"

namespace controller {
namespace {

using base::ErrorCode;

constexpr base::Milliseconds kScriptTimeout{20'000};
constexpr char kRoot[] = "root";

// As root, once: the runtime folder of the default user, and a control group that it owns. Prints
// the group's folder, then the digest of the executor that is there, each on a line that may be
// empty. $1: uid:gid of the default user.
constexpr char kLayOut[] = R"sh(set -eu
d=/var/lib/sandfleet
if [ -L "$d" ] || { [ -e "$d" ] && [ ! -d "$d" ]; }; then
  echo "$d is not a real folder" >&2
  exit 70
fi
mkdir -p "$d"
chown "$1" "$d"
chmod 0700 "$d"
mount= path= group=
while read -r _ point type _; do
  if [ "$type" = cgroup2 ]; then mount=$point; break; fi
done </proc/mounts
while IFS=: read -r number _ own; do
  if [ "$number" = 0 ]; then path=$own; fi
done </proc/self/cgroup
if [ -n "$mount" ]; then
  [ -d "$mount$path" ] || path=
  if mkdir -p "${mount}${path%/}/sandfleet" 2>/dev/null; then
    group=${mount}${path%/}/sandfleet
    chown "$1" "$group" "$group/cgroup.procs" "$group/cgroup.subtree_control" 2>/dev/null || group=
  fi
fi
echo "$group"
if [ -f "$2" ] && [ ! -L "$2" ]; then sha256sum "$2" 2>/dev/null || echo unknown; else echo none; fi
)sh";

// As root: ends every executor of ours but envd. $1: its path.
constexpr char kEndAll[] = R"sh(for p in /proc/[0-9]*; do
  case "$(readlink "$p/exe" 2>/dev/null)" in
    "$1" | "$1 (deleted)") ;;
    *) continue ;;
  esac
  case "$(tr '\0' ' ' <"$p/cmdline" 2>/dev/null)" in
    *" --envd"*) continue ;;
  esac
  kill -9 "${p#/proc/}" 2>/dev/null
done
exit 0
)sh";

// As the default user: waits to be moved into its control group ($1, may be empty), then becomes
// the executor.
constexpr char kStart[] = R"sh(umask 077
moved() {
  while IFS= read -r own; do
    case "$own" in 0::*/sandfleet) return 0 ;; esac
  done </proc/self/cgroup
  return 1
}
n=0
step=0.002
while [ -n "$1" ] && [ $n -lt 150 ] && ! moved; do
  n=$((n + 1))
  [ $n -lt 50 ] || step=0.02
  sleep $step
done
exec "$2" run --runtime-dir "$3" >>"$3/executor.log" 2>&1
)sh";

class Preparation {
 public:
  Preparation(envd::Sandbox& sandbox, ExecutorDoor& door, const ExecutorFile& file,
              const PrepareOptions& options, std::stop_token stop)
      : sandbox_(sandbox), door_(door), file_(file), options_(options), stop_(std::move(stop)) {}

  base::Result<wire::Health> run(const wire::StartSecrets& secrets, bool replace) {
    options_.on_step("asking whether envd is well");
    if (const auto well = sandbox_.health(stop_); !well) return from_envd(well.error());
    options_.on_step("asking whether an executor answers");
    const auto answer = door_.health(stop_);
    // Behind an edge that turns us away one may be at work: it is neither started nor replaced.
    if (is_turned_away(answer) || (!replace && is_heard(answer))) return answer;
    if (const auto begun = begin(secrets, replace); !begun) return from_envd(begun.error());
    return wait_for_answer();
  }

 private:
  struct Layout {
    std::string group;
    bool right_executor = false;
  };

  base::Result<base::Done> begin(const wire::StartSecrets& secrets, bool replace) {
    if (replace) {
      options_.on_step("ending the executor that refuses us");
      CHECK_OK(script(kEndAll, {kExecutorPath}, kRoot));
    }
    TRY(const Layout layout, lay_out());
    if (!layout.right_executor) CHECK_OK(upload());
    return start(secrets, layout.group);
  }

  static bool is_turned_away(const base::Result<wire::Health>& answer) {
    return !answer && answer.error().code == ErrorCode::kConflict;
  }
  static bool is_heard(const base::Result<wire::Health>& answer) {
    return answer || answer.error().code == ErrorCode::kDenied;
  }

  // Only the executor's refusal is kDenied: envd refuses an old token of the sandbox, and that is
  // no reason to replace an executor.
  static base::Error from_envd(base::Error error) {
    if (error.code == ErrorCode::kDenied) error.code = ErrorCode::kUnavailable;
    return error;
  }

  base::Result<std::string> script(const char* text, std::vector<std::string> arguments,
                                   const std::string& user) {
    envd::Command command{.argv = {"/bin/sh", "-c", text, "sandfleet"}, .user = user};
    for (auto& argument : arguments) command.argv.push_back(std::move(argument));
    TRY(auto finished, sandbox_.run(command, kScriptTimeout, stop_));
    if (finished.exit_code == 0) return std::move(finished.output);
    return base::error(ErrorCode::kUnavailable, "a step inside the sandbox ended with ",
                       std::to_string(finished.exit_code), ": ",
                       net::tame(base::trim(finished.error_output)));
  }

  base::Result<Layout> lay_out() {
    options_.on_step("asking who the default user is");
    TRY(const std::string ids, script("id -u; id -g", {}, ""));
    const auto lines = base::split(std::string(base::trim(ids)), '\n');
    if (lines.size() != 2)
      return base::error(ErrorCode::kUnavailable,
                         "cannot tell who the default user is: ", net::tame(ids));
    options_.on_step("laying out the executor's folder");
    TRY(const std::string told, script(kLayOut, {lines[0] + ":" + lines[1], kExecutorPath}, kRoot));
    const auto facts = base::split(told, '\n');
    if (facts.size() < 2)
      return base::error(ErrorCode::kUnavailable,
                         "the layout step told too little: ", net::tame(told));
    Layout layout{.group = facts[0]};
    TRY(layout.right_executor, is_right(base::split(facts[1], ' ').front()));
    return layout;
  }

  // An image without sha256sum sends the file itself.
  base::Result<bool> is_right(const std::string& digest) {
    if (digest != "unknown") return digest == file_.sha256_hex;
    options_.on_step("reading the executor that is there");
    TRY(const std::string content, sandbox_.download(kExecutorPath, kRoot, stop_));
    return base::to_hex(base::sha256(content)) == file_.sha256_hex;
  }

  base::Result<base::Done> upload() {
    if (file_.content.empty())
      return base::error(ErrorCode::kInvalid,
                         "the template has no executor and none is at hand to send: give its file "
                         "with --executor");
    options_.on_step("sending the executor");
    const std::string folder = "/opt/sandfleet/bin";
    const std::string staged = folder + "/.executor-" + base::random_hex(8);
    CHECK_OK(script("mkdir -p \"$1\"", {folder}, kRoot));
    CHECK_OK(sandbox_.upload(staged, file_.content, kRoot, stop_));
    CHECK_OK(script("chmod 0755 \"$1\"", {staged}, kRoot));
    return sandbox_.move(staged, kExecutorPath, kRoot, stop_);
  }

  base::Result<base::Done> start(const wire::StartSecrets& secrets, const std::string& group) {
    options_.on_step("starting the executor");
    const envd::Command command{
        .argv = {"/bin/sh", "-c", kStart, "sandfleet", group, kExecutorPath, kRuntimeFolder}};
    TRY(const std::uint32_t pid,
        sandbox_.start(command, base::to_text(wire::to_json(secrets)) + "\n", stop_));
    if (group.empty()) return base::Done{};
    options_.on_step("moving the executor into its control group");
    // Only root may move it out of envd's group; without one it merely stays there.
    (void)script("echo \"$1\" >\"$2/cgroup.procs\"", {std::to_string(pid), group}, kRoot);
    return base::Done{};
  }

  base::Result<wire::Health> wait_for_answer() {
    options_.on_step("waiting for the executor's first answer");
    const base::Moment until = options_.clock.now() + options_.answer_within;
    base::Milliseconds pause = options_.ask_first;
    for (;;) {
      auto answer = door_.health(stop_);
      if (is_heard(answer) || is_turned_away(answer) || stop_.stop_requested()) return answer;
      if (options_.clock.now() >= until) return never_answered(answer.error());
      options_.rest(pause);
      pause = std::min(pause + pause / 2, options_.ask_every);
    }
  }

  base::Error never_answered(const base::Error& last_ask) {
    options_.on_step("reading the executor's log");
    const auto log = sandbox_.download(std::string(kRuntimeFolder) + "/executor.log", kRoot, stop_);
    const std::string last = log && log->size() > 400 ? log->substr(log->size() - 400)
                             : log                    ? *log
                                                      : "";
    return base::error(ErrorCode::kUnavailable, "the executor was started and does not answer (",
                       last_ask.message, "); its log ends: ", base::on_one_line(base::trim(last)));
  }

  envd::Sandbox& sandbox_;
  ExecutorDoor& door_;
  const ExecutorFile& file_;
  const PrepareOptions& options_;
  const std::stop_token stop_;
};

}  // namespace

base::Result<wire::Health> bring_to_life(envd::Sandbox& sandbox, ExecutorDoor& door,
                                         const ExecutorFile& file,
                                         const wire::StartSecrets& secrets, bool replace,
                                         const PrepareOptions& options, std::stop_token stop) {
  return Preparation(sandbox, door, file, options, stop).run(secrets, replace);
}

}  // namespace controller
