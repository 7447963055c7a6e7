#include "executor/terminal/system_call.h"

#include <charconv>
#include <vector>

#include "libs/base/strings.h"

namespace executor {
namespace {

// A program of 32 bits has other numbers for its calls, which the kernel does not mark. Its stack
// tells: that of no other program is so low.
constexpr std::uint64_t kLowStackEnd = std::uint64_t{1} << 32;

enum class Kind { kFile, kPoll, kSelect, kEpoll, kResumed, kUntold };
struct Known {
  int amd64, arm64;  // Its numbers; -1: that machine has no such call.
  Kind kind;
  std::size_t argument = 0;  // Which of them is the descriptor.
};

// From the kernel's arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
constexpr Known kKnown[] = {
    {0, 63, Kind::kFile},        // read
    {19, 65, Kind::kFile},       // readv
    {327, 286, Kind::kFile},     // preadv2, which reads like readv at offset -1
    {275, 76, Kind::kFile},      // splice
    {40, 71, Kind::kFile, 1},    // sendfile
    {7, -1, Kind::kPoll},        // poll
    {271, 73, Kind::kPoll},      // ppoll
    {23, -1, Kind::kSelect},     // select
    {270, 72, Kind::kSelect},    // pselect6
    {232, -1, Kind::kEpoll},     // epoll_wait
    {281, 22, Kind::kEpoll},     // epoll_pwait
    {441, 441, Kind::kEpoll},    // epoll_pwait2
    {219, 128, Kind::kResumed},  // restart_syscall
    {426, 426, Kind::kUntold},   // io_uring_enter
};

const Known* find(std::int64_t number, Machine machine) {
  for (const Known& one : kKnown)
    if (number >= 0 && number == (machine == Machine::kAmd64 ? one.amd64 : one.arm64)) return &one;
  return nullptr;
}

std::optional<std::uint64_t> parse_address(std::string_view text) {
  if (!text.starts_with("0x")) return std::nullopt;
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [parsed_to, failed] = std::from_chars(text.data() + 2, end, value, 16);
  return failed == std::errc() && parsed_to == end ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<SystemCall> parse_system_call(std::string_view text) {
  const auto fields = base::split(base::trim(text), ' ');
  SystemCall call;
  const auto number = base::parse_integer(fields[0]);
  // With a number there are its arguments, and always the two pointers of stack and program.
  const std::size_t arguments = number.value_or(-1) < 0 ? 0 : call.arguments.size();
  if (!number || fields.size() != 1 + arguments + 2) return std::nullopt;
  call.number = *number;
  for (std::size_t index = 0; index < arguments; ++index)
    call.arguments[index] = parse_address(fields[1 + index]).value_or(0);
  call.stack = parse_address(fields[1 + arguments]).value_or(0);
  return call;
}

WaitsFor waits_for(const SystemCall& call, Machine machine) {
  if (machine == Machine::kOther) return Untold{};
  if (call.number < 0) return NoFile{};
  if (call.stack < kLowStackEnd) return Untold{};
  const Known* const known = find(call.number, machine);
  if (!known) return NoFile{};
  const auto& arguments = call.arguments;
  const auto descriptor = static_cast<int>(arguments[known->argument]);
  switch (known->kind) {
    case Kind::kFile:
      return OneFile{descriptor};
    case Kind::kPoll:
      return PolledFiles{arguments[0], arguments[1]};
    case Kind::kSelect:
      return SelectedFiles{arguments[1], arguments[0]};
    case Kind::kEpoll:
      return EpollFiles{descriptor};
    case Kind::kResumed:
      return Resumed{{arguments[0], arguments[1]}};
    case Kind::kUntold:
      break;
  }
  return Untold{};
}

}  // namespace executor
