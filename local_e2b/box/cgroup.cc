#include "local_e2b/box/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "libs/base/files.h"
#include "libs/base/folder.h"
#include "libs/base/kernel_files.h"
#include "libs/base/strings.h"

namespace local_e2b {
namespace fs = std::filesystem;
namespace {

using Steady = std::chrono::steady_clock;

// The kernel wakes pollers of cgroup.events when it changes; the cap is for a wake-up that was
// missed between the read and the poll.
constexpr base::Milliseconds kPollMax{20};

base::Milliseconds left_until(Steady::time_point deadline) {
  return std::chrono::duration_cast<base::Milliseconds>(deadline - Steady::now());
}

// Folders of a cgroup tree, children before their parents. A box chooses how deep and wide its own
// tree is, within the kernel's limits, so this walks without recursion.
std::vector<fs::path> tree_from_leaves(const fs::path& top) {
  std::vector<fs::path> found{top};
  for (std::size_t next = 0; next < found.size(); ++next) {
    for (const fs::path& entry : base::entries_of(found[next])) {
      std::error_code gone;
      if (fs::is_directory(entry, gone)) found.push_back(entry);
    }
  }
  return {found.rbegin(), found.rend()};
}

}  // namespace

bool has_line(const std::string& events, const std::string& line) {
  return ("\n" + events).find("\n" + line + "\n") != std::string::npos;
}

std::string cgroup2_path(const std::string& text) {
  for (const std::string& line : base::split(text, '\n'))
    if (line.starts_with("0::/")) return line.substr(3);
  return "";
}

bool is_in_cgroup(const std::string& text, const std::string& folder, const std::string& name) {
  const std::string wanted = "/" + folder + "/" + name;
  const std::string path = cgroup2_path(text);
  return path.ends_with(wanted) || path.find(wanted + "/") != std::string::npos;
}

base::Result<base::Done> Cgroup::make(uid_t owner, gid_t group) const {
  CHECK_OK(base::make_folders(path_, 0755));
  // Delegation as the kernel's cgroup-v2 text describes it: the folder and these three files.
  for (const char* file : {"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"}) {
    const fs::path owned = *file ? path_ / file : path_;
    if (::chown(owned.c_str(), owner, group) != 0)
      return base::errno_error("give away", owned, errno);
  }
  return base::Done{};
}

base::Result<base::Fd> Cgroup::open() const {
  base::Fd folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return base::errno_error("open", path_, errno);
  return folder;
}

bool Cgroup::exists() const { return ::access(path_.c_str(), F_OK) == 0; }

bool Cgroup::empty() const {
  const auto events = base::read_file(path_ / "cgroup.events");
  return events && has_line(*events, "populated 0");
}

std::vector<pid_t> Cgroup::members() const {
  std::vector<pid_t> members;
  for (const fs::path& folder : tree_from_leaves(path_)) {
    const auto text = base::read_file(folder / "cgroup.procs");
    for (const std::string& line : base::split(text ? *text : "", '\n'))
      if (const auto pid = base::parse_integer(line)) members.push_back(static_cast<pid_t>(*pid));
  }
  return members;
}

base::Result<base::Done> Cgroup::wait_for(const std::string& line,
                                          base::Milliseconds at_most) const {
  const fs::path file = path_ / "cgroup.events";
  const auto deadline = Steady::now() + at_most;
  base::Fd events(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!events) return base::errno_error("read", file, errno);
  for (;;) {
    char text[256];
    const ssize_t got = ::pread(events.get(), text, sizeof text, 0);
    if (got < 0 && errno == ENODEV) return base::errno_error("read", file, ENOENT);  // Removed.
    if (got < 0 && errno != EINTR) return base::errno_error("read", file, errno);
    if (got > 0 && has_line(std::string(text, static_cast<std::size_t>(got)), line))
      return base::Done{};
    const base::Milliseconds left = left_until(deadline);
    if (left <= base::Milliseconds(0))
      return base::error(base::ErrorCode::kUnavailable, file.string(), " did not say \"", line,
                         "\" within ", std::to_string(at_most.count()),
                         " ms: a process in it may be stuck in the kernel (state D)");
    pollfd changed{events.get(), POLLPRI, 0};
    ::poll(&changed, 1, static_cast<int>(std::min(left, kPollMax).count()));
  }
}

base::Result<base::Done> Cgroup::freeze(base::Milliseconds at_most) const {
  CHECK_OK(base::write_setting(path_ / "cgroup.freeze", "1"));
  auto still = wait_for("frozen 1", at_most);
  // Half of a box that stands still would be worse than one that runs.
  if (!still) (void)base::write_setting(path_ / "cgroup.freeze", "0");
  return still;
}

base::Result<base::Done> Cgroup::thaw(base::Milliseconds at_most) const {
  CHECK_OK(base::write_setting(path_ / "cgroup.freeze", "0"));
  return wait_for("frozen 0", at_most);
}

bool Cgroup::frozen() const {
  const auto events = base::read_file(path_ / "cgroup.events");
  return events && has_line(*events, "frozen 1");
}

base::Result<base::Done> Cgroup::kill(base::Milliseconds at_most) const {
  CHECK_OK(base::write_setting(path_ / "cgroup.kill", "1"));
  return wait_for("populated 0", at_most);
}

base::Result<base::Done> Cgroup::remove(base::Milliseconds at_most) const {
  const auto deadline = Steady::now() + at_most;
  for (;;) {
    int failure = 0;
    for (const fs::path& folder : tree_from_leaves(path_))
      if (::rmdir(folder.c_str()) != 0 && errno != ENOENT) failure = errno;
    if (failure == 0) return base::Done{};
    // A dying process keeps its cgroup busy for a moment after it stopped counting as a member; and
    // the builder of a server that was killed may have put one more in.
    if (failure != EBUSY || left_until(deadline) <= base::Milliseconds(0))
      return base::errno_error("remove cgroup", path_, failure);
    (void)base::write_setting(path_ / "cgroup.kill", "1");
    ::poll(nullptr, 0, 1);
  }
}

}  // namespace local_e2b
