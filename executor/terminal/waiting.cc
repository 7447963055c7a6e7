#include "executor/terminal/waiting.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <vector>

#include "executor/terminal/system_call.h"
#include "libs/base/files.h"
#include "libs/base/folder.h"
#include "libs/base/kernel_files.h"
#include "libs/base/result.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

constexpr int kRoundsMax = 3;                // Of looks at a thread that moves.
constexpr int kNestedMax = 4;                // The kernel nests no more epoll instances.
constexpr std::uint64_t kFilesMax = 65'536;  // That one call may wait for.
constexpr auto kUnknown = InputWaiting::kUnknown;
constexpr auto kYes = InputWaiting::kYes;
constexpr auto kNo = InputWaiting::kNo;

// The kernel's own layout of a device's number, as fdinfo has it.
dev_t device_in_fdinfo(std::uint64_t number) {
  constexpr unsigned kMinorBits = 20;
  return makedev(static_cast<unsigned>(number >> kMinorBits),
                 static_cast<unsigned>(number & ((1u << kMinorBits) - 1)));
}

// One line "tfd: 0 events: 19 data: 0 pos:0 ino:3 sdev:18" of an epoll instance's fdinfo, in
// decimal and hexadecimal by turns.
struct EpollEntry {
  int descriptor = -1;
  std::uint32_t events = 0;
  TerminalFile file;
};
std::optional<std::uint64_t> number_after(std::string_view line, std::string_view word, int base) {
  const auto at = line.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = base::trim(line.substr(at + word.size()));
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), value, base);
  return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
}
std::optional<EpollEntry> parse_entry(std::string_view line) {
  const auto descriptor = number_after(line, "tfd:", 10);
  const auto events = number_after(line, "events:", 16);
  const auto inode = number_after(line, "ino:", 16);
  const auto device = number_after(line, "sdev:", 16);
  if (!descriptor || !events || !inode || !device) return std::nullopt;
  return EpollEntry{static_cast<int>(*descriptor),
                    static_cast<std::uint32_t>(*events),
                    {device_in_fdinfo(*device), static_cast<ino_t>(*inode)}};
}

bool same(const TerminalFile& a, const TerminalFile& b) {
  return a.device == b.device && a.inode == b.inode;
}

// One thread, in its folder of /proc.
class Thread {
 public:
  Thread(fs::path folder, const TerminalFile& terminal)
      : folder_(std::move(folder)), terminal_(terminal) {}

  InputWaiting waits() const {
    for (int round = 0; round < kRoundsMax; ++round) {
      if (state() != 'S') return kNo;  // It runs, is stopped, waits for a disk, or is gone.
      const auto text = base::read_file(folder_ / "syscall");
      if (!text) return unless_gone();
      const auto call = parse_system_call(*text);
      if (!call) return kNo;
      const InputWaiting found = judge(waits_for(*call));
      // What was read meanwhile counts only when it slept all the time.
      const auto still = base::read_file(folder_ / "syscall");
      if (found == kNo || (still && *still == *text && state() == 'S')) return found;
    }
    return kNo;  // It does not keep still.
  }

 private:
  char state() const {
    const auto text = base::read_file(folder_ / "stat");
    const auto facts = text ? base::parse_process(base::trim(*text)) : std::nullopt;
    return facts ? facts->state : 'X';
  }
  InputWaiting unless_gone() const { return state() == 'X' ? kNo : kUnknown; }

  InputWaiting judge(const WaitsFor& what) const {
    return std::visit(
        base::Overloaded{
            [](const NoFile&) { return kNo; }, [](const Untold&) { return kUnknown; },
            [this](const OneFile& file) { return reads(file.descriptor, 0); },
            [this](const PolledFiles& files) { return reads_polled(files); },
            [this](const SelectedFiles& files) { return reads_selected(files); },
            [this](const EpollFiles& files) { return reads_epoll(files.descriptor, kNestedMax); },
            [this](const Resumed& resumed) { return reads_resumed(resumed); }},
        what);
  }

  // Input of the terminal comes by `descriptor`, also through an epoll instance.
  InputWaiting reads(int descriptor, int nested_max) const {
    const std::string path = (folder_ / "fd" / std::to_string(descriptor)).string();
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) return errno == ENOENT ? kNo : unless_gone();
    // "/dev/tty": of a process that has this terminal, this terminal.
    if (S_ISCHR(found.st_mode) && found.st_rdev == makedev(5, 0)) return kYes;
    if (same({found.st_dev, found.st_ino}, terminal_)) return kYes;
    std::error_code failed;
    const bool epoll = fs::read_symlink(path, failed) == "anon_inode:[eventpoll]";
    return epoll && nested_max > 0 ? reads_epoll(descriptor, nested_max) : kNo;
  }

  InputWaiting reads_polled(const PolledFiles& files) const {
    if (files.count > kFilesMax) return kUnknown;
    std::vector<pollfd> polled(files.count);
    if (!copy_memory(files.address, polled.data(), polled.size() * sizeof(pollfd))) return kUnknown;
    InputWaiting answer = kNo;
    for (const pollfd& one : polled)
      if (one.fd >= 0 && (one.events & (POLLIN | POLLRDNORM)) != 0)
        answer = std::max(answer, reads(one.fd, kNestedMax));
    return answer;
  }

  InputWaiting reads_selected(const SelectedFiles& files) const {
    constexpr unsigned kBits = 64;
    if (files.address == 0) return kNo;
    if (files.count > kFilesMax) return kUnknown;
    std::vector<std::uint64_t> words((files.count + kBits - 1) / kBits);
    if (!copy_memory(files.address, words.data(), words.size() * sizeof words[0])) return kUnknown;
    InputWaiting answer = kNo;
    for (std::uint64_t one = 0; one < files.count; ++one)
      if ((words[one / kBits] >> (one % kBits) & 1) != 0)
        answer = std::max(answer, reads(static_cast<int>(one), kNestedMax));
    return answer;
  }

  InputWaiting reads_epoll(int descriptor, int nested_max) const {
    const auto text = base::read_file(folder_ / "fdinfo" / std::to_string(descriptor));
    if (!text) return unless_gone();
    InputWaiting answer = kNo;
    for (const std::string& line : base::split(*text, '\n')) {
      const auto entry = parse_entry(line);
      if (entry && (entry->events & (EPOLLIN | EPOLLRDNORM)) != 0)
        answer = std::max(answer, reads_entry(*entry, nested_max));
    }
    return answer;
  }

  // What an epoll instance watches is a file, which may have another descriptor by now, or none.
  InputWaiting reads_entry(const EpollEntry& entry, int nested_max) const {
    if (same(entry.file, terminal_)) return kYes;
    struct stat found{};
    const fs::path path = folder_ / "fd" / std::to_string(entry.descriptor);
    const bool known =
        ::stat(path.c_str(), &found) == 0 && same({found.st_dev, found.st_ino}, entry.file);
    return known ? reads(entry.descriptor, nested_max - 1) : kUnknown;
  }

  // Only polls, sleeps and waits for locks are resumed so. The function of the kernel that it
  // sleeps in tells a poll from the others; "0" where the kernel does not say.
  InputWaiting reads_resumed(const Resumed& resumed) const {
    const auto place = base::read_file(folder_ / "wchan");
    if (!place) return unless_gone();
    if (place->empty() || *place == "0") return kUnknown;
    return place->find("poll") != std::string::npos ? reads_polled(resumed.polled) : kNo;
  }

  bool copy_memory(std::uint64_t address, void* to, std::size_t bytes) const {
    const base::Fd memory(::open((folder_ / "mem").c_str(), O_RDONLY | O_CLOEXEC));
    return memory && ::pread(memory.get(), to, bytes, static_cast<off_t>(address)) ==
                         static_cast<ssize_t>(bytes);
  }

  fs::path folder_;
  const TerminalFile& terminal_;
};

// Whether it may have asked for a read in a ring, which no thread is seen to wait for.
bool may_read_by_ring(const fs::path& process) {
  std::error_code failed;
  for (fs::directory_iterator one(process / "fd", failed), end; !failed && one != end;
       one.increment(failed))
    if (std::error_code gone; fs::read_symlink(*one, gone) == "anon_inode:[io_uring]") return true;
  return failed && failed != std::errc::no_such_file_or_directory;
}

}  // namespace

InputWaiting waits_for_input(pid_t pid, const TerminalFile& terminal) {
  const fs::path process = "/proc/" + std::to_string(pid);
  InputWaiting answer = kNo;
  for (const fs::path& thread : base::entries_of(process / "task"))
    answer = std::max(answer, Thread(thread, terminal).waits());
  if (answer == kNo && may_read_by_ring(process)) return kUnknown;
  return answer;
}

}  // namespace executor
