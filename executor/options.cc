#include "executor/options.h"

#include <algorithm>
#include <string_view>

#include "executor/programs.h"
#include "libs/base/flags.h"

namespace executor {

namespace {

const base::FlagRule kPort{.at_least = 0, .at_most = 65535};

void add_run_command(base::Flags& flags, RunOptions& run) {
  base::Flags& command = flags.command("run", "be the executor that Sandfleet's controller starts",
                                       [&run] { return run_executor(run); });
  command.number("--port", run.port, "TCP port; 0 picks a free one", kPort);
  command.text("--listen", run.listen, "IPv4 address");
  command.text("--runtime-dir", run.runtime_folder, "private folder: real, mode 0700, our own",
               {.required = true});
  command.text("--log-file", run.log_file,
               "what is said from the moment on that the secrets are there goes here instead of "
               "stderr");
  command.text(
      "--cgroup", run.cgroup,
      "cgroup2 folder in which each process of a harness gets a group of its own; when not "
      "given, this process's own if it is ours");
}

void add_stand_in_command(base::Flags& flags) {
  flags.command("stand-in",
                "for measuring: answer as envd and executor of many sandboxes at once, in which "
                "nothing runs, until stdin ends; stdout says where",
                run_stand_in);
}

}  // namespace

int parse_and_run(int argc, const char* const* argv) {
  EnvdOptions envd;
  RunOptions run;
  base::Flags flags("sandfleet-executor",
                    "Runs inside a sandbox: files and processes for those outside.");
  flags.flag("--envd", envd.chosen, "serve E2B's envd API; as pid 1, be the sandbox's init too");
  flags.number("--port", envd.port, "TCP port of --envd; 0 picks a free one", kPort);
  flags.text("--listen", envd.listen, "IPv4 address of --envd");
  flags.text("--etc", envd.etc, "folder whose passwd and group name the users of --envd");
  flags.text("--cgroup", envd.cgroup,
             "cgroup2 folder in which each command of --envd gets a group of its own; when not "
             "given, this process's own below /sys/fs/cgroup if it is ours");

  // One of the two lives is always chosen: a command is asked for unless --envd is there.
  const auto asks_for_envd = [](const char* word) { return std::string_view(word) == "--envd"; };
  if (!std::any_of(argv, argv + argc, asks_for_envd)) {
    add_run_command(flags, run);
    add_stand_in_command(flags);
  }

  if (const auto exit_code = flags.parse(argc, argv)) return *exit_code;
  return run_envd(envd);
}

}  // namespace executor
