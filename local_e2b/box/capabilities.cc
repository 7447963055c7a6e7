#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/kernel_files.h"
#include "libs/base/mountinfo.h"
#include "local_e2b/box/box.h"
#include "local_e2b/box/mounts.h"
#include "local_e2b/box/uid_ranges.h"

namespace local_e2b {
namespace fs = std::filesystem;
namespace {

std::optional<fs::path> find_cgroup2() {
  const auto text = base::read_file("/proc/self/mountinfo");
  if (!text) return std::nullopt;
  for (const base::MountPoint& mount : base::parse_mountinfo(*text))
    if (mount.kind == "cgroup2" && ::access(mount.path.c_str(), X_OK) == 0) return mount.path;
  return std::nullopt;
}

// Makes a cgroup of our own for a moment, because only a cgroup that is not the root has the files.
base::Result<base::Done> try_cgroup(const fs::path& cgroup2) {
  const fs::path tried = cgroup2 / ("sandfleet-probe-" + base::random_hex(6));
  if (::mkdir(tried.c_str(), 0755) != 0) return base::errno_error("make cgroup", tried, errno);
  int failure = 0;
  for (const char* file : {"cgroup.freeze", "cgroup.kill", "cgroup.events"}) {
    const int mode = std::strcmp(file, "cgroup.events") == 0 ? R_OK : W_OK;
    if (failure == 0 && ::access((tried / file).c_str(), mode) != 0) failure = errno;
  }
  ::rmdir(tried.c_str());
  if (failure != 0) return base::errno_error("use the freeze and kill files of", tried, failure);
  return base::Done{};
}

// A child in a user namespace of its own that waits; nothing but system calls in it, for this
// process may have threads.
class NamespaceHolder {
 public:
  NamespaceHolder() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return;
    ours_ = base::Fd(ends[0]);
    const base::Fd theirs(ends[1]);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      char byte = ::unshare(CLONE_NEWUSER) == 0 ? 'y' : 'n';
      (void)!::write(ends[1], &byte, 1);
      ::close(ends[0]);
      (void)!::read(ends[1], &byte, 1);  // Until the other end is closed.
      ::_exit(0);
    }
    char byte = 'n';
    ready_ = child_ > 0 && ::read(ours_.get(), &byte, 1) == 1 && byte == 'y';
  }
  ~NamespaceHolder() {
    ours_.reset();
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
  }
  NamespaceHolder(const NamespaceHolder&) = delete;
  NamespaceHolder& operator=(const NamespaceHolder&) = delete;

  bool ready() const { return ready_; }
  fs::path proc() const { return fs::path("/proc") / std::to_string(child_); }

 private:
  base::Fd ours_;
  pid_t child_ = -1;
  bool ready_ = false;
};

base::Result<base::Done> try_idmapped_mount() {
  const NamespaceHolder holder;
  if (!holder.ready())
    return base::error(base::ErrorCode::kUnavailable,
                       "cannot make a user namespace; see /proc/sys/user/max_user_namespaces");
  for (const char* name : {"uid_map", "gid_map"})
    CHECK_OK(base::write_setting(holder.proc() / name, id_map(kFirstUid)));
  const fs::path space = holder.proc() / "ns/user";
  base::Fd opened(::open(space.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) return base::errno_error("open", space, errno);
  TRY(const base::Fd mount, clone_mount("/usr", opened.get()));
  return base::Done{};
}

void probe_cgroup(Capabilities& found) {
  const auto cgroup2 = find_cgroup2();
  if (!cgroup2) {
    found.lacks.push_back(
        "no cgroup2 is mounted; mount one: mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 "
        "cgroup2 /sys/fs/cgroup/unified");
    return;
  }
  found.cgroup2 = *cgroup2;
  const auto tried = try_cgroup(*cgroup2);
  found.cgroup2_freeze = tried.ok();
  if (!tried)
    found.lacks.push_back("cgroup2 cannot freeze and kill (" + tried.error().message +
                          "); run as root on Linux 5.14 or later, in a container with its cgroup2 "
                          "mounted writable");
}

}  // namespace

Capabilities probe_capabilities() {
  Capabilities found;
  found.root = ::geteuid() == 0;
  if (!found.root) found.lacks.push_back("not root; start it with sudo or as root");
  probe_cgroup(found);
  const auto idmapped = try_idmapped_mount();
  found.idmapped_mounts = idmapped.ok();
  if (!idmapped)
    found.lacks.push_back("no id-mapped mounts (" + idmapped.error().message +
                          "); run as root on Linux 5.12 or later with /usr on ext4, xfs, btrfs or "
                          "tmpfs (not on an overlay)");
  return found;
}

}  // namespace local_e2b
