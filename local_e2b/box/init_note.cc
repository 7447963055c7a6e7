#include "local_e2b/box/init_note.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "libs/base/fd.h"
#include "libs/base/files.h"
#include "libs/base/json.h"
#include "libs/base/kernel_files.h"
#include "libs/base/strings.h"

namespace local_e2b {
namespace fs = std::filesystem;
namespace {

fs::path file_in(const fs::path& folder) { return folder / "init"; }

}  // namespace

std::optional<InitNote> note_of(pid_t pid) {
  const auto found = base::look_at_process(pid);
  const auto boot = base::read_file("/proc/sys/kernel/random/boot_id");
  if (!found || !boot) return std::nullopt;
  return InitNote{pid, found->start, std::string(base::trim(*boot))};
}

base::Result<base::Done> write_init_note(const fs::path& folder, const InitNote& note) {
  const base::Json json = {{"pid", note.pid}, {"start", note.start}, {"boot", note.boot}};
  return base::write_file_atomically(file_in(folder), base::to_text(json), 0600,
                                     base::Durable::kPastProcess);
}

std::optional<InitNote> read_init_note(const fs::path& folder) {
  const auto text = base::read_file(file_in(folder));
  const auto json = text ? base::parse_json(*text) : base::Result<base::Json>(text.error());
  if (!json) return std::nullopt;
  const auto pid = base::integer_at(*json, "pid");
  const auto start = base::integer_at(*json, "start");
  const auto boot = base::text_at(*json, "boot");
  if (!pid || !start || !boot || *pid < 2 || *pid > INT32_MAX || *start < 0) return std::nullopt;
  return InitNote{static_cast<pid_t>(*pid), static_cast<std::uint64_t>(*start), *boot};
}

base::Result<base::Done> end_init(const InitNote& note, base::Milliseconds at_most) {
  const base::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, note.pid, 0)));
  if (!process && errno == ESRCH) return base::Done{};
  if (!process) return base::errno_error("get hold of process", std::to_string(note.pid), errno);
  // Looked at after it was got hold of: so it is not a newcomer that is killed.
  if (note_of(note.pid) != note) return base::Done{};
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0) != 0 && errno != ESRCH)
    return base::errno_error("kill process", std::to_string(note.pid), errno);
  pollfd gone{process.get(), POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&gone, 1, static_cast<int>(at_most.count()));
  } while (ready < 0 && errno == EINTR);
  if (ready == 1) return base::Done{};
  return base::error(base::ErrorCode::kUnavailable, "process ", std::to_string(note.pid),
                     " was killed but is not gone within ", std::to_string(at_most.count()),
                     " ms: one of the box may be stuck in the kernel (state D)");
}

}  // namespace local_e2b
