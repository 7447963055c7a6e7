#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "libs/wire/frames/fields.h"

// What is asked and answered about processes: docs/protocol.md, "Processes". Arguments, paths and
// the environment are bytes.
namespace wire {

inline constexpr std::int64_t kArgumentsMax = 4096;
inline constexpr std::size_t kArgumentBytesMax = 131'071;   // Linux: MAX_ARG_STRLEN, less the NUL.
inline constexpr std::size_t kLaunchBytesMax = 512u << 10;  // argv and env together.
inline constexpr std::size_t kEnvironmentMax = 1024;
inline constexpr std::int64_t kGraceMsMax = 2'147'483'647;
inline constexpr std::int64_t kCollectBytesMax = 64 << 20;
inline constexpr std::int64_t kReadBytesMax = 16 << 20;
inline constexpr std::int64_t kProcessPageMax = 256;
inline constexpr std::int64_t kTerminalSideMax = 65'535;

// Sets a variable, or removes it.
using EnvironmentChange = std::pair<std::string, std::optional<std::string>>;

struct ResolveExecutableArgs {
  static constexpr std::string_view kOp = "process.resolveExecutable";
  struct Ok {
    std::string path;
    bool operator==(const Ok&) const = default;
  };
  std::string command;
  std::vector<EnvironmentChange> env = {};
  bool operator==(const ResolveExecutableArgs&) const = default;
};

struct Pipe {
  std::uint32_t stream = 0;
  bool operator==(const Pipe&) const = default;
};
struct StdinIgnored {
  bool operator==(const StdinIgnored&) const = default;
};
struct StdinData {  // The request's upload.
  bool operator==(const StdinData&) const = default;
};
using StdinMode = std::variant<StdinIgnored, StdinData, Pipe>;

struct OutputDiscarded {
  bool operator==(const OutputDiscarded&) const = default;
};
struct Collected {
  std::int64_t bytes_max = 0;
  std::optional<std::int64_t> spill_bytes_max = std::nullopt;
  std::optional<std::uint32_t> stream = std::nullopt;  // Where the tail is mirrored.
  bool operator==(const Collected&) const = default;
};
using OutputMode = std::variant<OutputDiscarded, Pipe, Collected>;

struct TerminalSize {
  std::int64_t rows = 24, columns = 80;
  bool operator==(const TerminalSize&) const = default;
};

struct SpawnArgs {
  static constexpr std::string_view kOp = "process.spawn";
  struct Ok {
    std::int64_t pid = 0;
    bool operator==(const Ok&) const = default;
  };
  std::string handle;
  std::vector<std::string> argv = {};
  std::optional<std::string> cwd = std::nullopt;
  std::vector<EnvironmentChange> env = {};
  std::int64_t grace_ms = 0;
  StdinMode in = StdinIgnored{};
  OutputMode out = OutputDiscarded{}, err = OutputDiscarded{};
  std::optional<TerminalSize> terminal = std::nullopt;
  bool detached = false;  // It ends with no session.
  bool operator==(const SpawnArgs&) const = default;
};

enum class OutputName { kStdout, kStderr };

struct ReadOutputArgs {
  static constexpr std::string_view kOp = "process.read";
  struct Ok {
    std::int64_t from = 0, next = 0;
    bool lossy = false, ended = false;
    std::optional<std::string> spill_path = std::nullopt;
    bool operator==(const Ok&) const = default;
  };
  std::string handle;
  OutputName output = OutputName::kStdout;
  std::int64_t from = 0;
  std::int64_t bytes_max = kReadBytesMax;
  std::optional<std::int64_t> wait_ms = std::nullopt;  // For something to be there.
  bool operator==(const ReadOutputArgs&) const = default;
};

struct OutputState {
  std::int64_t bytes = 0;
  bool ended = false, lossy = false;
  std::optional<std::string> spill_path = std::nullopt;
  bool operator==(const OutputState&) const = default;
};

struct ProcessState {
  std::int64_t pid = -1;  // -1: it could not be started.
  bool exited = false;
  std::optional<std::int64_t> exit_code = std::nullopt;
  std::optional<std::string> signal = std::nullopt;
  bool settled = false, empty = false;
  std::optional<OutputState> out = std::nullopt, err = std::nullopt;
  std::optional<TerminalSize> terminal = std::nullopt;
  std::optional<std::int64_t> age_ms = std::nullopt;  // Since it was begun.
  bool detached = false;                              // It ends with no session.
  bool operator==(const ProcessState&) const = default;
};

enum class WaitUntil { kExit, kSettled, kEmpty };

struct WaitArgs {
  static constexpr std::string_view kOp = "process.wait";
  struct Ok {
    bool reached = false;
    ProcessState state = {};
    bool operator==(const Ok&) const = default;
  };
  std::string handle;
  WaitUntil until = WaitUntil::kExit;
  std::optional<std::int64_t> timeout_ms = std::nullopt;
  bool operator==(const WaitArgs&) const = default;
};

struct SignalArgs {
  static constexpr std::string_view kOp = "process.signal";
  enum class To { kLeader, kGroup, kTree };
  struct Ok {
    bool delivered = false;
    bool operator==(const Ok&) const = default;
  };
  std::string handle;
  std::string signal;  // "SIGTERM".
  To to = To::kGroup;
  bool operator==(const SignalArgs&) const = default;
};

struct TerminateArgs {
  static constexpr std::string_view kOp = "process.terminate";
  struct Ok {
    bool operator==(const Ok&) const = default;
  };
  std::string handle;
  std::optional<std::int64_t> grace_ms = std::nullopt;
  bool operator==(const TerminateArgs&) const = default;
};

struct AttachedOutput {
  std::uint32_t stream = 0;
  std::int64_t from = 0;
  bool operator==(const AttachedOutput&) const = default;
};

struct OutputAt {
  std::int64_t from = 0;
  bool lossy = false;
  bool operator==(const OutputAt&) const = default;
};

struct AttachArgs {
  static constexpr std::string_view kOp = "process.attach";
  struct Ok {
    ProcessState state = {};
    std::optional<std::int64_t> stdin_at = std::nullopt;
    std::optional<OutputAt> out = std::nullopt, err = std::nullopt;
    bool operator==(const Ok&) const = default;
  };
  std::string handle;
  std::optional<std::uint32_t> in = std::nullopt;
  std::optional<AttachedOutput> out = std::nullopt, err = std::nullopt;
  bool adopt = false;
  bool operator==(const AttachArgs&) const = default;
};

struct ReleaseArgs {
  static constexpr std::string_view kOp = "process.release";
  struct Ok {
    bool operator==(const Ok&) const = default;
  };
  std::string handle;
  bool operator==(const ReleaseArgs&) const = default;
};

struct ListedProcess {
  std::string handle;
  std::vector<std::string> argv = {};
  bool mine = false;
  ProcessState state = {};
  bool operator==(const ListedProcess&) const = default;
};

struct ListProcessesArgs {
  static constexpr std::string_view kOp = "process.list";
  struct Ok {
    std::vector<ListedProcess> processes = {};
    bool more = false;
    bool operator==(const Ok&) const = default;
  };
  std::int64_t page_entries = kProcessPageMax;
  std::optional<std::string> after = std::nullopt;
  bool operator==(const ListProcessesArgs&) const = default;
};

}  // namespace wire
