#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "executor/process/spawn.h"
#include "executor/subprocess/failure.h"
#include "libs/base/clock.h"

namespace executor {

inline constexpr std::size_t kHandleBytesMin = 16, kHandleBytesMax = 64;
inline constexpr std::size_t kArgumentsMax = 4096;
inline constexpr std::size_t kArgumentBytesMax =
    131'071;  // The kernel's MAX_ARG_STRLEN, with its 0.
inline constexpr std::size_t kVariablesMax = 1024;
inline constexpr std::size_t kCommandBytesMax = 512u << 10;  // Arguments and variables together.
inline constexpr std::size_t kPathBytesMax = 4096;
inline constexpr std::int64_t kGraceMsMax = 2'147'483'647;
inline constexpr std::int64_t kCollectBytesMax = 64 << 20;
inline constexpr std::size_t kDataBytesMax = 16u << 20;
inline constexpr std::int64_t kScrollbackBytesMax = 4 << 20;

struct Ignored {  // stdin reads the end at once; output goes nowhere.
  bool operator==(const Ignored&) const = default;
};
struct Piped {  // Every byte, in order; who does not read holds the process back.
  bool operator==(const Piped&) const = default;
};
struct Data {  // These bytes and then the end. That nobody reads them is no error.
  std::string bytes;
  bool operator==(const Data&) const = default;
};
struct Collect {  // Exactly the last of them are kept, and the process is never held back.
  std::int64_t bytes_max = 0;
  std::optional<std::int64_t> spill_bytes_max = std::nullopt;  // Of a file of the whole stream.
  bool operator==(const Collect&) const = default;
};
using InputMode = std::variant<Ignored, Data, Piped>;
using OutputMode = std::variant<Ignored, Piped, Collect>;

// In order; without a value the variable is removed.
using EnvironmentChanges = std::vector<std::pair<std::string, std::optional<std::string>>>;

struct SpawnRequest {
  std::string id;  // The caller's choice: [A-Za-z0-9_-]{16,64}, unguessable.
  std::vector<std::string> argv;
  std::string cwd;  // Absolute.
  EnvironmentChanges env = {};
  InputMode stdin_mode = Ignored{};
  OutputMode stdout_mode = Ignored{}, stderr_mode = Ignored{};
  std::int64_t grace_ms = 0;
  // It gets a terminal of that size: stdin is what is typed (or nothing), stdout what is shown, of
  // which the last bytes are collected, and stderr is ignored.
  std::optional<TerminalSize> terminal = std::nullopt;
  bool detached = false;  // It ends with no session.
};

// kInvalid says what is wrong with it, before anything is done.
ProcessResult<base::Done> check(const SpawnRequest& request);
ProcessResult<base::Done> check(const EnvironmentChanges& changes);
ProcessResult<base::Done> check(const TerminalSize& size);

}  // namespace executor
