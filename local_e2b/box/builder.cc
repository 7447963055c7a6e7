#include "local_e2b/box/builder.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "libs/base/files.h"
#include "libs/base/kernel_files.h"
#include "local_e2b/box/blueprint.h"
#include "local_e2b/box/box.h"
#include "local_e2b/box/cgroup.h"
#include "local_e2b/box/handed.h"
#include "local_e2b/box/init_child.h"
#include "local_e2b/box/init_note.h"
#include "local_e2b/box/root_fs.h"

namespace local_e2b {
namespace fs = std::filesystem;
namespace {

using Done = base::Result<base::Done>;

struct Builder {
  const Blueprint& plan;
  int report;
  base::Fd log = {};
  base::Fd to_init = {};
  pid_t init = -1;
  std::vector<base::Fd> mounts = {};
};

Done write_files(Builder& builder) { return write_root(builder.plan); }

Done open_log(Builder& builder) {
  const fs::path file = builder.plan.folder / "envd.log";
  builder.log =
      base::Fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!builder.log) return base::errno_error("open", file, errno);
  return base::Done{};
}

// CLONE_PARENT makes init the server's own child, to be reaped by it. If the box has a cgroup, init
// is in it before it runs its first instruction.
Done start_init(Builder& builder) {
  base::Fd cgroup;
  if (!builder.plan.cgroup.empty()) {
    TRY(cgroup, Cgroup(builder.plan.cgroup).open());
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return base::errno_error("make", "a socket pair", errno);
  builder.to_init = base::Fd(ends[0]);
  const base::Fd inits_end(ends[1]);
  clone_args wanted{};
  wanted.flags = CLONE_PARENT | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS |
                 CLONE_NEWIPC | CLONE_NEWNET;
  if (cgroup) {
    wanted.flags |= CLONE_INTO_CGROUP;
    wanted.cgroup = static_cast<std::uint64_t>(cgroup.get());
  }
  builder.init = static_cast<pid_t>(::syscall(SYS_clone3, &wanted, sizeof wanted));
  if (builder.init < 0) return base::errno_error("clone into", "new namespaces", errno);
  if (builder.init == 0) {
    builder.to_init.reset();  // Else it would keep itself waiting when the builder is gone.
    become_init(builder.plan, inits_end.get(), builder.report, builder.log.get());
  }
  return base::write_all(builder.report,
                         base::to_text(base::Json{{"initPid", builder.init}}) + "\n");
}

fs::path proc_of_init(const Builder& builder) {
  return fs::path("/proc") / std::to_string(builder.init);
}

Done map_ids(Builder& builder) {
  const BoxIds& ids = builder.plan.ids;
  const fs::path proc = proc_of_init(builder);
  // Who may map only himself may do so only where nobody can leave groups.
  if (ids.single()) CHECK_OK(base::write_setting(proc / "setgroups", "deny"));
  CHECK_OK(base::write_setting(proc / "uid_map", ids.uid_map()));
  return base::write_setting(proc / "gid_map", ids.gid_map());
}

Done note_init(Builder& builder) {
  const auto note = note_of(builder.init);
  if (!note) return base::error(base::ErrorCode::kUnavailable, "init is gone");
  return write_init_note(builder.plan.folder, *note);
}

// What init may not do itself, as it is not root on the host. With one id it may as much as we.
Done open_for_init(Builder& builder) {
  if (builder.plan.ids.single()) return base::Done{};
  const fs::path file = proc_of_init(builder) / "ns/user";
  const base::Fd space(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space) return base::errno_error("open", file, errno);
  TRY(builder.mounts, open_mounts(builder.plan, space.get()));
  return base::Done{};
}

Done hand_over(Builder& builder) { return send_mounts(builder.to_init.get(), builder.mounts); }

constexpr Step<Builder> kSteps[] = {
    {"write the root", write_files}, {"open the log", open_log},
    {"start init", start_init},      {"map the ids", map_ids},
    {"note down init", note_init},   {"open the mounts", open_for_init},
    {"hand over", hand_over},
};

int build(const Blueprint& plan, int report) {
  Builder builder{plan, report};
  const auto failure = run_steps(kSteps, builder, plan.fail_at);
  if (!failure) return EXIT_SUCCESS;
  if (builder.init > 0) ::kill(builder.init, SIGKILL);
  (void)base::write_all(report, base::to_text(to_json(*failure)) + "\n");
  return EXIT_FAILURE;
}

}  // namespace

std::vector<std::string> build_steps() {
  std::vector<std::string> names;
  add_names(kSteps, names);
  add_init_step_names(names);
  return names;
}

std::optional<int> run_box_builder(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], kBuilderFlag) != 0) return std::nullopt;
  // A builder must not outlive its server: the next one would not know what it still makes.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::umask(0);
  const auto text = base::read_file("/proc/self/fd/0");
  const auto json = text ? base::parse_json(*text) : base::Result<base::Json>(text.error());
  const auto plan = json ? blueprint_from_json(*json) : base::Result<Blueprint>(json.error());
  // Whoever starts it by hand has no blueprint on stdin.
  if (!plan || plan->server_pid != ::getppid()) return EXIT_FAILURE;
  const base::Fd report(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10));
  // The server waits until nobody holds the report open. The number stays in use, so that nothing
  // opened later is mistaken for a standard stream.
  const base::Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (::dup2(nothing.get(), STDOUT_FILENO) < 0) return EXIT_FAILURE;
  return build(*plan, report.get());
}

}  // namespace local_e2b
