#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libs/wire/frames/process_operations.h"

// What is asked and answered about processes that have a terminal: docs/protocol.md, "Terminals".
namespace wire {

struct ResizeTerminalArgs {
  static constexpr std::string_view kOp = "terminal.resize";
  struct Ok {
    bool operator==(const Ok&) const = default;
  };
  std::string handle;
  TerminalSize size = {};
  bool operator==(const ResizeTerminalArgs&) const = default;
};

struct ForegroundArgs {
  static constexpr std::string_view kOp = "terminal.foreground";
  struct Ok {
    std::optional<std::int64_t> process_group = std::nullopt;  // Nothing: nobody is.
    std::optional<bool> input_waiting = std::nullopt;          // Nothing: it cannot be known.
    bool operator==(const Ok&) const = default;
  };
  std::string handle;
  std::optional<std::int64_t> typed = std::nullopt;  // So much of its stdin has the client written.
  bool operator==(const ForegroundArgs&) const = default;
};

struct SignalForegroundArgs {
  static constexpr std::string_view kOp = "terminal.signal";
  struct Ok {
    std::int64_t process_group = 0;
    bool operator==(const Ok&) const = default;
  };
  std::string handle;
  std::string signal;                                // "SIGINT".
  std::optional<std::int64_t> typed = std::nullopt;  // It comes behind so much of its stdin.
  bool operator==(const SignalForegroundArgs&) const = default;
};

}  // namespace wire
