#pragma once

#include <cstdint>
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

struct Options {
  std::string state = {};
  std::string space = "default";
  bool all_spaces = false;
  std::string output = "table";
  bool watch = false, wait = false;
  std::int64_t timeout_seconds = 300;
  std::string file = {};
  std::string policy = {};
  bool remove_manifest = false;
  std::vector<std::string> words = {};
};

struct Verb {
  std::string name, about;
  bool takes_words = true;
  bool prints = false;  // -o, --watch, -A
  bool waits = false;   // --wait, --timeout
  bool removes = false;
  bool applies = false;
};
const std::vector<Verb>& verbs();

// Whether the first word of a command line is a flag or a verb.
bool could_begin(const std::string& word);

// The flags that may stand before the verb too.
void add_common_flags(base::Flags& flags, Options& options);
// The flags of one verb, from the table above.
void add_flags(base::Flags& flags, const Verb& verb, Options& options);

enum class Subject { kSandboxes, kProviders };
struct Words {
  Subject subject = Subject::kSandboxes;
  std::vector<std::string> names = {};
};
// "sfb a b", "sandbox/a", or plain "a b": the kind may be left out. It is a Sandbox then.
Words read_words(const std::vector<std::string>& words);

}  // namespace cli
