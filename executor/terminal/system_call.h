#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

// In which system call a thread sleeps, as the kernel tells it in /proc/PID/task/TID/syscall
// (proc(5)), and what it waits for in it.
namespace executor {

struct SystemCall {
  std::int64_t number = -1;  // -1: it sleeps outside of any.
  std::array<std::uint64_t, 6> arguments{};
  std::uint64_t stack = 0;  // Its stack pointer.
  bool operator==(const SystemCall&) const = default;
};
// Nothing when the thread runs.
std::optional<SystemCall> parse_system_call(std::string_view text);

// What it may read once it is woken. Addresses are the sleeping thread's own.
struct NoFile {  // Time, a child, a lock, room to write.
  bool operator==(const NoFile&) const = default;
};
struct OneFile {
  int descriptor = -1;
  bool operator==(const OneFile&) const = default;
};
struct PolledFiles {  // An array of `struct pollfd`.
  std::uint64_t address = 0, count = 0;
  bool operator==(const PolledFiles&) const = default;
};
struct SelectedFiles {  // An fd_set of `count` bits; address 0: none.
  std::uint64_t address = 0, count = 0;
  bool operator==(const SelectedFiles&) const = default;
};
struct EpollFiles {
  int descriptor = -1;  // Of the epoll instance.
  bool operator==(const EpollFiles&) const = default;
};
// It was stopped in a call and goes on with it, of which the number is not told. In a poll `polled`
// is what it waits for.
struct Resumed {
  PolledFiles polled;
  bool operator==(const Resumed&) const = default;
};
struct Untold {  // What it waits for cannot be known.
  bool operator==(const Untold&) const = default;
};
using WaitsFor =
    std::variant<NoFile, OneFile, PolledFiles, SelectedFiles, EpollFiles, Resumed, Untold>;

enum class Machine { kAmd64, kArm64, kOther };
#if defined(__x86_64__)
inline constexpr Machine kThisMachine = Machine::kAmd64;
#elif defined(__aarch64__)
inline constexpr Machine kThisMachine = Machine::kArm64;
#else
inline constexpr Machine kThisMachine = Machine::kOther;
#endif

WaitsFor waits_for(const SystemCall& call, Machine machine = kThisMachine);

}  // namespace executor
