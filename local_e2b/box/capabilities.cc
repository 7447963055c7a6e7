#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
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
#include "local_e2b/box/cgroup.h"
#include "local_e2b/box/mounts.h"
#include "local_e2b/box/user_namespaces.h"

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

// A child in user and mount namespaces of its own that waits; nothing but system calls in it, for
// this process may have threads.
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
      NamespaceTrial trial;
      if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        trial.making = errno;
      else if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
        trial.mounting = errno;
      (void)!::write(ends[1], &trial, sizeof trial);
      ::close(ends[0]);
      (void)!::read(ends[1], &trial, 1);  // Until the other end is closed.
      ::_exit(0);
    }
    if (child_ > 0 && ::read(ours_.get(), &trial_, sizeof trial_) != sizeof trial_)
      trial_ = {.making = EIO};
  }
  ~NamespaceHolder() {
    ours_.reset();
    if (child_ > 0) ::waitpid(child_, nullptr, 0);
  }
  NamespaceHolder(const NamespaceHolder&) = delete;
  NamespaceHolder& operator=(const NamespaceHolder&) = delete;

  const NamespaceTrial& trial() const { return trial_; }
  fs::path proc() const { return fs::path("/proc") / std::to_string(child_); }

 private:
  base::Fd ours_;
  pid_t child_ = -1;
  NamespaceTrial trial_{.making = EAGAIN};
};

base::Result<base::Done> try_idmapped_mount(const NamespaceHolder& holder) {
  const BoxIds ids = range_from(kFirstUid);
  CHECK_OK(base::write_setting(holder.proc() / "uid_map", ids.uid_map()));
  CHECK_OK(base::write_setting(holder.proc() / "gid_map", ids.gid_map()));
  const fs::path space = holder.proc() / "ns/user";
  base::Fd opened(::open(space.c_str(), O_RDONLY | O_CLOEXEC));
  if (!opened) return base::errno_error("open", space, errno);
  TRY(const base::Fd mount, clone_mount("/usr", opened.get()));
  return base::Done{};
}

void probe_namespaces(Capabilities& found) {
  const NamespaceHolder holder;
  const auto objection =
      objection_to_user_namespaces(holder.trial(), read_user_namespace_settings());
  if (objection) found.lacks.push_back(*objection);
  if (objection || !found.root) return;
  if (const auto tried = try_idmapped_mount(holder); !tried)
    found.lacks.push_back("no id-mapped mounts (" + tried.error().message +
                          "); run it on Linux 5.12 or later with /usr on ext4, xfs, btrfs or tmpfs "
                          "(not on an overlay)");
}

// Boxes of root are kept apart by their cgroups, so root needs them.
void probe_cgroup_of_root(Capabilities& found) {
  const auto cgroup2 = find_cgroup2();
  if (!cgroup2) {
    found.lacks.push_back(
        "no cgroup2 is mounted; mount one: mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 "
        "cgroup2 /sys/fs/cgroup/unified");
    return;
  }
  found.cgroup2 = *cgroup2;
  if (const auto tried = try_cgroup(*cgroup2); !tried)
    found.lacks.push_back("cgroup2 cannot freeze and kill (" + tried.error().message +
                          "); run it on Linux 5.14 or later, in a container with its cgroup2 "
                          "mounted writable");
}

// An ordinary user may make cgroups in the one that he is in, if it was delegated to him. The
// kernel asks for both: to write to that one, and to the new one.
base::Result<fs::path> find_delegated_cgroup() {
  const auto cgroup2 = find_cgroup2();
  if (!cgroup2) return base::error(base::ErrorCode::kNotFound, "no cgroup2 is mounted");
  TRY(const std::string own, base::read_file("/proc/self/cgroup"));
  const fs::path folder = *cgroup2 / fs::path(cgroup2_path(own)).relative_path();
  if (::access((folder / "cgroup.procs").c_str(), W_OK) != 0)
    return base::errno_error("move processes in", folder, errno);
  CHECK_OK(try_cgroup(folder));
  return folder;
}

void probe_cgroup_of_user(Capabilities& found) {
  const auto delegated = find_delegated_cgroup();
  if (delegated)
    found.cgroup2 = *delegated;
  else
    found.no_pause = "it takes a cgroup to freeze a sandbox, and none is delegated to user " +
                     std::to_string(::geteuid()) + " (" + delegated.error().message +
                     "); start the provider with systemd-run --user --scope -p Delegate=yes, or "
                     "as root";
}

}  // namespace

Capabilities probe_capabilities() {
  Capabilities found;
  found.root = ::geteuid() == 0;
  probe_namespaces(found);
  found.root ? probe_cgroup_of_root(found) : probe_cgroup_of_user(found);
  return found;
}

}  // namespace local_e2b
