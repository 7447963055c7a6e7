#include "local_e2b/box/init_child.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "libs/base/descriptors.h"
#include "libs/base/files.h"
#include "local_e2b/box/box.h"
#include "local_e2b/box/handed.h"
#include "local_e2b/box/mounts.h"

namespace local_e2b {
namespace fs = std::filesystem;
namespace {

using Done = base::Result<base::Done>;

struct Init {
  const Blueprint& plan;
  int builder;
  int report;
  int log;
  std::vector<base::Fd> mounts = {};
};

Done failed(const char* what, const fs::path& at) { return base::errno_error(what, at, errno); }

Done receive_parts(Init& init) {
  TRY(init.mounts, receive_mounts(init.builder));
  return base::Done{};
}

Done become_root(Init& init) {
  // With one id the kernel lets nobody leave groups.
  if (!init.plan.ids.single() && ::setgroups(0, nullptr) != 0)
    return failed("leave the groups of", "the server");
  if (::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0) return failed("become", "root");
  return base::Done{};
}

Done open_own_mounts(Init& init) {
  if (!init.mounts.empty()) return base::Done{};
  TRY(init.mounts, open_mounts(init.plan));
  return base::Done{};
}

// Signals, session, keys and limits are inherited otherwise.
Done forget_server(Init& init) {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::umask(022);
  if (init.plan.descriptors) base::set_descriptor_limit(*init.plan.descriptors);
  if (::setsid() < 0) return failed("start", "a session");
  // A kernel without keys has none to share.
  if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) < 0 && errno != ENOSYS)
    return failed("start", "a keyring");
  return base::Done{};
}

// Not among the flags of the clone: the namespace's root is the cgroup one is in when it is made.
Done enter_cgroup_namespace(Init&) {
  if (::unshare(CLONE_NEWCGROUP) != 0) return failed("make", "a cgroup namespace");
  return base::Done{};
}

Done attach_root(Init& init) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return failed("stop sharing mounts at", "/");
  // On top of everything: it is found by its descriptor, and pivot_root makes it the root.
  const int root = init.mounts[kRootFolder].get();
  CHECK_OK(attach_mount(root, "/"));
  if (::fchdir(root) != 0) return failed("enter", "the new root");
  return base::Done{};
}

// The layers lie in /tmp for as long as it takes; the overlays hold on to what they need of them.
// `volatile`: a box does not outlive the machine, so its unmounting need not wait for the disk.
Done lay_overlays(Init& init) {
  CHECK_OK(attach_mount(init.mounts[kLayers].get(), "tmp"));
  const auto overlays = overlays_of(init.plan);
  for (std::size_t number = 0; number < overlays.size(); ++number) {
    const std::string layer = "tmp/" + std::to_string(number);
    const int lower = init.mounts[kFirstLower + number].get();
    CHECK_OK(attach_mount(lower, (layer + "/lower").c_str()));
    std::string options = "userxattr,volatile";
    for (const char* part : {"lower", "upper", "work"})
      options.append(",").append(part).append("dir=").append(layer).append("/").append(part);
    CHECK_OK(mount_kind("overlay", overlays[number].target.c_str(), MS_NODEV, options));
  }
  if (::umount2("tmp", MNT_DETACH) != 0) return failed("put away", "the layers");
  return base::Done{};
}

Done mount_proc(Init&) { return mount_kind("proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC); }

Done protect_proc_sys(Init&) {
  CHECK_OK(bind("proc/sys", "proc/sys"));
  return make_read_only("proc/sys");
}

Done mount_sys(Init&) {
  return mount_kind("sysfs", "sys", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC);
}

// Writable, so that root inside can make cgroups of its own beneath the box's. Without one of the
// box's it would show the server's.
Done mount_cgroup(Init& init) {
  if (init.plan.cgroup.empty()) return base::Done{};
  return mount_kind("cgroup2", "sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC);
}

Done make_devices(Init& init) {
  CHECK_OK(mount_kind("tmpfs", "dev", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k"));
  for (const char* name : {"null", "zero", "full", "random", "urandom", "tty"}) {
    const std::string inside = std::string("dev/") + name;
    const base::Fd place(::open(inside.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
    if (!place) return failed("make", inside);
    CHECK_OK(bind(("/" + inside).c_str(), inside.c_str()));
  }
  if (::mkdir("dev/pts", 0755) != 0 || ::mkdir("dev/shm", 01777) != 0)
    return failed("make folders in", "/dev");
  const std::string group = init.plan.ids.single() ? "" : ",gid=5";  // tty
  CHECK_OK(mount_kind("devpts", "dev/pts", MS_NOSUID | MS_NOEXEC,
                      "newinstance,ptmxmode=0666,mode=620" + group));
  CHECK_OK(mount_kind("tmpfs", "dev/shm", MS_NOSUID | MS_NODEV, "mode=1777"));
  for (const auto& [to, at] : {std::pair("pts/ptmx", "dev/ptmx"),
                               {"/proc/self/fd", "dev/fd"},
                               {"/proc/self/fd/0", "dev/stdin"},
                               {"/proc/self/fd/1", "dev/stdout"},
                               {"/proc/self/fd/2", "dev/stderr"}})
    if (::symlink(to, at) != 0) return failed("make link", at);
  return base::Done{};
}

Done make_run(Init&) {
  CHECK_OK(mount_kind("tmpfs", "run", MS_NOSUID | MS_NODEV, "mode=755"));
  if (::mkdir("run/lock", 0755) != 0 || ::chmod("run/lock", 01777) != 0)
    return failed("make folder", "/run/lock");
  return base::Done{};
}

// Shows a file of the host at `inside`, an absolute path of the box.
Done show_file(int mount, const char* inside) {
  const fs::path place = fs::path(inside).relative_path();
  CHECK_OK(base::make_folders(place.parent_path(), 0755));
  const base::Fd made(::open(place.c_str(), O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0755));
  if (!made) return failed("make", place);
  return attach_mount(mount, place.c_str());
}

Done show_executor(Init& init) {
  CHECK_OK(show_file(init.mounts[kExecutor].get(), kEnvdPath));
  if (!init.plan.executor_baked_in) return base::Done{};
  CHECK_OK(show_file(init.mounts[kBakedExecutor].get(), kBakedExecutorPath));
  // Whoever finds none computes it. There is none where the folder is the host's and closed to us.
  const fs::path note = fs::path(std::string(kBakedExecutorPath) + ".sha256").relative_path();
  (void)base::write_file_atomically(note, init.plan.executor_digest + "\n", 0644,
                                    base::Durable::kPastProcess);
  return base::Done{};
}

Done name_host(Init& init) {
  if (::sethostname(init.plan.id.data(), init.plan.id.size()) != 0)
    return failed("set the host name", init.plan.id);
  return base::Done{};
}

Done raise_loopback(Init&) {
  const base::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  if (!socket || ::ioctl(socket.get(), SIOCGIFFLAGS, &loopback) != 0)
    return failed("read the flags of", "lo");
  loopback.ifr_flags |= IFF_UP;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &loopback) != 0) return failed("raise", "lo");
  return base::Done{};
}

Done leave_host(Init&) {
  if (::syscall(SYS_pivot_root, ".", ".") != 0) return failed("change the root to", "the new root");
  // The old root now lies on top of the new one.
  if (::umount2(".", MNT_DETACH) != 0) return failed("put away", "the old root");
  if (::chdir("/") != 0) return failed("enter", "/");
  return base::Done{};
}

// Nothing of the host stays open but the log, for writing at its end.
Done wire_streams(Init& init) {
  const base::Fd nothing(::open("/dev/null", O_RDONLY));
  if (!nothing) return failed("open", "/dev/null");
  if (::dup2(nothing.get(), 0) < 0 || ::dup2(init.log, 1) < 0 || ::dup2(init.log, 2) < 0)
    return failed("wire", "stdin, stdout and stderr");
  if (::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) != 0) return failed("close", "what is open");
  return base::Done{};
}

Done start_executor(Init&) {
  const char* const arguments[] = {kEnvdPath, "--envd", nullptr};
  const char* const environment[] = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "HOME=/root",
      "USER=root",
      "LOGNAME=root",
      "SHELL=/bin/bash",
      "LANG=C.UTF-8",
      nullptr};
  ::execve(kEnvdPath, const_cast<char* const*>(arguments), const_cast<char* const*>(environment));
  return failed("run", kEnvdPath);
}

constexpr Step<Init> kSteps[] = {
    {"receive the mounts", receive_parts},
    {"become root inside", become_root},
    {"open its own mounts", open_own_mounts},
    {"forget the server", forget_server},
    {"enter a cgroup namespace", enter_cgroup_namespace},
    {"attach the root", attach_root},
    {"lay the overlays", lay_overlays},
    {"make /dev", make_devices},
    {"mount /proc", mount_proc},
    {"protect /proc/sys", protect_proc_sys},
    {"mount /sys", mount_sys},
    {"mount the cgroup", mount_cgroup},
    {"make /run", make_run},
    {"show the executor", show_executor},
    {"name the host", name_host},
    {"raise the loopback", raise_loopback},
    {"leave the host's root", leave_host},
    {"wire the standard streams", wire_streams},
    {"start the executor", start_executor},
};

}  // namespace

void become_init(const Blueprint& plan, int builder, int report, int log) {
  Init init{plan, builder, report, log};
  const auto failure = run_steps(kSteps, init, plan.fail_at);
  if (failure) (void)base::write_all(report, base::to_text(to_json(*failure)) + "\n");
  ::_exit(1);
}

void add_init_step_names(std::vector<std::string>& names) { add_names(kSteps, names); }

}  // namespace local_e2b
