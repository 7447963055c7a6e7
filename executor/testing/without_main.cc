#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/filesystem/testing/seam.h"
#include "executor/options.h"
#include "libs/base/descriptors.h"
#include "libs/base/strings.h"

// The program, for tests from outside, with the mechanisms left out that SANDFLEET_WITHOUT names,
// separated by commas, until there is the file that SANDFLEET_WITHOUT_UNTIL names, if any: so they
// show first that a leak is seen. Nothing but tests has it.
namespace {

constexpr std::pair<std::string_view, executor::Mechanism> kMechanisms[] = {
    {"nameless", executor::Mechanism::kNameless}, {"clearing", executor::Mechanism::kClearing},
    {"sweep", executor::Mechanism::kSweep},       {"noLinks", executor::Mechanism::kNoLinks},
    {"fence", executor::Mechanism::kFence},
};

// What the kernel is not asked for any more, though that is told to have been done.
enum class Call { kCloseFile, kClosePipe, kCloseTerminal, kKill, kUnlink, kRemoveGroup };
constexpr std::pair<std::string_view, Call> kCalls[] = {
    {"closing", Call::kCloseFile},
    {"closingPipes", Call::kClosePipe},
    {"closingTerminals", Call::kCloseTerminal},
    {"killing", Call::kKill},
    {"unlinking", Call::kUnlink},
    {"removingGroups", Call::kRemoveGroup},
};
std::set<Call> left_out;
// A file: once it is there, all is done again.
const char* done_again = nullptr;

bool leaves_out(Call call) {
  return left_out.contains(call) && (done_again == nullptr || ::access(done_again, F_OK) != 0);
}

std::optional<Call> closing_of(int fd) {
  struct stat seen{};
  if (left_out.empty() || ::fstat(fd, &seen) != 0) return std::nullopt;
  if (S_ISREG(seen.st_mode)) return Call::kCloseFile;
  // Those that we read: at what somebody writes, others wait for the end.
  if (S_ISFIFO(seen.st_mode) && (::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
    return Call::kClosePipe;
  return ::isatty(fd) == 1 ? std::optional(Call::kCloseTerminal) : std::nullopt;
}

}  // namespace

// The linker leads calls of our own code here (--wrap).
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" int __real_close(int fd);
extern "C" int __real_kill(pid_t pid, int number);
extern "C" int __real_unlink(const char* path);
extern "C" int __real_rmdir(const char* path);
extern "C" int __wrap_close(int fd) {
  const auto call = closing_of(fd);
  return call && leaves_out(*call) ? 0 : __real_close(fd);
}
extern "C" int __wrap_kill(pid_t pid, int number) {
  return number == SIGKILL && leaves_out(Call::kKill) ? 0 : __real_kill(pid, number);
}
extern "C" int __wrap_unlink(const char* path) {
  return leaves_out(Call::kUnlink) ? 0 : __real_unlink(path);
}
extern "C" int __wrap_rmdir(const char* path) {
  return leaves_out(Call::kRemoveGroup) ? 0 : __real_rmdir(path);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

int main(int argc, char** argv) {
  base::hold_standard_descriptors();
  const char* named = std::getenv("SANDFLEET_WITHOUT");
  done_again = std::getenv("SANDFLEET_WITHOUT_UNTIL");
  std::vector<std::unique_ptr<executor::Without>> without;
  for (const std::string& name : base::split(named ? named : "", ',')) {
    for (const auto& [word, call] : kCalls)
      if (word == name) left_out.insert(call);
    for (const auto& [word, mechanism] : kMechanisms)
      if (word == name) without.push_back(std::make_unique<executor::Without>(mechanism));
  }
  return executor::parse_and_run(argc, argv);
}
