#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libs/base/flags.h"

namespace cli {

// How a command ended.
enum Exit : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kNotFound = 3,
  kRefused = 4,
  kTimedOut = 5,
};

// "sandfleet", or "kubectl sandfleet" for who was started by kubectl: what people type to get it.
std::string program_named(const std::string& path);
// The path that it was called by, where it is found by no other word.
std::string path_called(const std::string& called);

struct Options {
  std::string program = "sandfleet";
  std::string path = {};  // By path_called.
  std::string state = {};
  std::string kubeconfig = {}, context = {};
  std::string space = {};  // Empty: the backend's own.
  bool all_spaces = false;
  std::string output = "table";
  bool watch = false, wait = false;
  std::int64_t timeout_seconds = 300;
  std::string file = {};
  std::string policy = {};
  bool remove_manifest = false;
  bool force_conflicts = false;
  std::vector<std::string> words = {};

  // Of what reaches into a sandbox.
  std::string socket = {}, token_file = {}, service_account = {};
  std::vector<std::string> command = {};  // By split_line.
  bool input = false, detach = false, tree = false;
  std::string folder = {}, permission_mode = {}, signal = {}, begun_as = "handle";
  std::vector<std::string> variables = {}, excludes = {};
  std::int64_t limit_seconds = 0, grace_seconds = 10;
  std::string escape_char = "~";
  bool follow = false, stdout_only = false, stderr_only = false;
  std::int64_t tail_lines = -1;  // All.
};

struct Verb {
  std::string name, about;
  bool takes_words = true;
  bool prints = false;  // -o, --watch, -A
  bool waits = false;   // --wait, --timeout
  bool removes = false;
  bool applies = false;
  bool attaches = false;  // Its first word is a sandbox, which it reaches into.
  bool runs = false;      // What follows is a command.
  bool lists = false;     // -o, of processes.
  bool kills = false;
  bool copies = false;  // Its words are two places.
  bool opens = false;   // A terminal; what follows, if anything, is its command.
  bool joins = false;   // What was left.
  bool reads = false;   // What is kept of outputs.

  bool has_command() const { return runs || opens; }
  bool names_handle() const { return kills || joins || reads; }  // Its last word.
};
const std::vector<Verb>& verbs();

// Whether the first word of a command line is a flag or a verb.
bool could_begin(const std::string& word);

// A command line, and apart from it the command that it is to run, as it is: what stands behind the
// first `--`, or from the second word on. Without a verb that runs one all of it is the first.
struct SplitLine {
  std::vector<std::string> line, command = {};
  bool operator==(const SplitLine&) const = default;
};
SplitLine split_line(const std::vector<std::string>& typed);

inline constexpr char kAbout[] = "Shows and changes sandboxes.";
// The program's flags, and each verb of the table as a command with its own; `run` gives the exit
// code of the one that was chosen. Gives the commands, in the order of the table.
std::vector<base::Flags*> declare(base::Flags& flags, Options& options,
                                  const std::function<int(const Verb&)>& run);

enum class Subject { kSandboxes, kProviders };
struct Words {
  Subject subject = Subject::kSandboxes;
  std::vector<std::string> names = {};
};
// "sfb a b", "sandbox/a", or plain "a b": the kind may be left out. It is a Sandbox then.
Words read_words(const std::vector<std::string>& words);

}  // namespace cli
