#include "executor/programs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <memory>

#include "executor/activity/process_cpu.h"
#include "executor/admin/admin.h"
#include "executor/admin/log_file.h"
#include "executor/admin/runtime_folder.h"
#include "executor/envd/server.h"
#include "executor/init/supervisor.h"
#include "executor/sessions/sessions.h"
#include "executor/stand_in/stand_in.h"
#include "executor/users/users.h"
#include "libs/aio/http_server.h"
#include "libs/aio/loop.h"
#include "libs/aio/stream.h"
#include "libs/base/clock.h"
#include "libs/base/descriptors.h"
#include "libs/base/files.h"
#include "libs/base/log.h"
#include "libs/base/reading.h"
#include "libs/wire/proof.h"
#include "libs/wire/session/endpoint.h"

namespace executor {
namespace {

constexpr std::size_t kSecretsBytesMax = 64u << 10;
constexpr base::Seconds kSecretsWithin{30};
// The second one is where the first hierarchy has the controllers.
constexpr const char* kCgroupMounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
constexpr std::int64_t kSpillBytesMax = std::int64_t{1} << 30;  // Of a sandbox.
constexpr int kBackgroundThreads = 4;  // For what blocks: files, and the marker's first sync.
static_assert(kExitLocked == wire::kExitTaken && kExitCannotListen == wire::kExitPortTaken);

// Nothing of ours may take the place of a standard stream, and nobody of the same user may read our
// memory: tokens are in it.
void settle_in() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0 && fd <= 2;) fd = ::dup(fd);
  ::prctl(PR_SET_DUMPABLE, 0);
  ::signal(SIGPIPE, SIG_IGN);
}

// Whoever started us may have left, or not read for long: that must not hold us up.
void tell_starter(std::string_view line) {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&output, 1, 0) > 0)
    static_cast<void>(base::write_all(STDOUT_FILENO, std::string(line) + "\n"));
}

using TidyUp = std::function<aio::Task<>()>;

aio::Task<int> until_told_to_stop(TidyUp tidy_up) {
  const int number = co_await aio::wait_for_signal({SIGTERM, SIGINT});
  base::log::info("stopping", {{"signal", number}});
  if (tidy_up) co_await tidy_up();
  ::_exit(0);  // The kernel closes the rest.
}

// Serves until a signal; `served` is called once the port is open.
int serve(aio::Loop& loop, aio::HttpServer::Handler handler, aio::HttpLimits limits,
          const std::string& address, std::int64_t port, const std::function<void()>& served,
          TidyUp tidy_up = {}) {
  aio::HttpServer server(loop.executor(), std::move(handler), limits);
  const auto listening = server.listen(address, static_cast<int>(port));
  if (!listening) {
    base::log::error("cannot listen", {{"error", listening.error()}});
    return kExitCannotListen;
  }
  base::log::info("serving", {{"address", address}, {"port", *listening}, {"pid", ::getpid()}});
  served();
  return loop.run(until_told_to_stop(std::move(tidy_up)));
}

std::optional<Groups> groups_for(const EnvdOptions& options) {
  if (!options.cgroup.empty()) return Groups(options.cgroup);
  return Groups::find();
}

int serve_daemon(const EnvdOptions& options, Memo memo) {
  const base::DescriptorLimit descriptors = base::raise_descriptor_limit();
  aio::Loop loop;
  const auto daemon = std::make_shared<Daemon>(
      loop.executor(), Users(options.etc, may_switch_users()), groups_for(options));
  daemon->command_descriptors = descriptors.before;
  if (const auto json = base::parse_json(memo.content()))
    daemon->settings = settings_from_json(*json);
  daemon->remember = [&memo](const EnvdSettings& settings) {
    memo.keep(base::to_text(to_json(settings)));
  };
  const auto handler = [daemon](std::shared_ptr<aio::HttpExchange> exchange) {
    return serve_envd(daemon, std::move(exchange));
  };
  return serve(loop, handler, aio::limits_within(descriptors.now), options.listen, options.port,
               [&] { memo.keep(memo.content()); });
}

// What an earlier life of this executor left running ends here: who has the lock of the runtime
// folder is the only one with groups of that name.
std::unique_ptr<Containments> containments_for(const RunOptions& options,
                                               const RuntimeFolder& folder,
                                               const aio::Executor& executor) {
  const std::string owner = "run-" + folder.id();
  std::optional<Groups> groups;
  if (!options.cgroup.empty()) groups.emplace(options.cgroup, owner);
  for (const char* mount : kCgroupMounts)
    if (!groups) groups = Groups::find(mount, owner);
  if (groups) return contain_by_groups(executor, *std::move(groups));
  return contain_by_reapers(executor);
}

// What the serving executor has in its runtime folder.
struct Kept {
  Marker marker;
  std::shared_ptr<Stagings> stagings;
  std::shared_ptr<SpillFolder> spills;
};
base::Result<Kept> kept_in(const RunOptions& options, const RuntimeFolder& folder,
                           const aio::Executor& executor, aio::Background& background) {
  const std::filesystem::path path = options.runtime_folder;
  TRY(auto marker, folder.open_marker());
  TRY(auto stagings, Stagings::open(path));
  TRY(auto spills, SpillFolder::open(executor, path / "spills", kSpillBytesMax, background));
  return Kept{std::move(marker), std::move(stagings), std::move(spills)};
}

int serve_admin(const RunOptions& options, RuntimeFolder folder, Memo memo) {
  if (!options.log_file.empty()) bound_log();
  const auto json = base::parse_json(memo.content());
  if (!json) return kExitBadSecrets;
  auto secrets = wire::start_secrets_from_json(*json);
  if (!secrets) {
    base::log::error("the start secrets are not right", {{"error", secrets.error()}});
    return kExitBadSecrets;
  }
  aio::Loop loop;
  const aio::Executor executor = loop.executor();
  const base::SystemClock clock;
  aio::Background background(kBackgroundThreads);
  auto kept = kept_in(options, folder, executor, background);
  if (!kept) {
    base::log::error("cannot use the runtime folder", {{"error", kept.error()}});
    return kExitBadFolder;
  }
  const base::DescriptorLimit descriptors = base::raise_descriptor_limit();
  const auto containments = containments_for(options, folder, executor);
  const User user = Users("/etc", false).current();
  const std::string attach_key = secrets->attach_key;
  // The groups also count what begins and ends between two looks at processes.
  Admin admin(*std::move(secrets), std::move(kept->marker), clock,
              {[] { return cpu_of_processes(); }, [&] { return containments->cpu_used(); }});
  Sessions sessions({.executor = executor,
                     .background = background,
                     .clock = clock,
                     .time = admin.time(),
                     .activity = admin.activity(),
                     .stagings = std::move(kept->stagings),
                     .processes = {.executor = executor,
                                   .background = background,
                                   .containments = *containments,
                                   .spills = std::move(kept->spills),
                                   .user = user,
                                   .environment = read_environment(environ),
                                   .descriptors = descriptors.before},
                     .instance = admin.health().instance,
                     .attach_key = attach_key,
                     .tools = (std::filesystem::path(options.runtime_folder) / "tools").string(),
                     .workspace = user.home},
                    admin.health().identity);
  admin.tell(sessions);
  aio::TaskGroup tasks(executor);
  tasks.spawn(admin.watch_the_clock());
  tasks.spawn(sessions.tend());
  const auto handler = [&](std::shared_ptr<aio::HttpExchange> exchange) {
    return exchange->head().path() == wire::kSessionPath ? sessions.serve(std::move(exchange))
                                                         : admin.serve(std::move(exchange));
  };
  const auto served = [&] {
    memo.keep(memo.content());
    tell_starter(wire::kServingLine);
    tasks.spawn(admin.settle_marker(background));
  };
  return serve(loop, handler, aio::limits_within(descriptors.now), options.listen, options.port,
               served, [&] { return sessions.stop(); });
}

// The first line of stdin, which then is closed. What it holds is secret. Whoever started us may
// have died before it wrote: the line ends then too, at kSecretsWithin.
std::string read_secrets_line() {
  const std::string line = base::read_line(0, kSecretsBytesMax, kSecretsWithin);
  ::close(0);
  settle_in();
  return line;
}

aio::Task<int> until_stdin_ends(aio::Executor executor) {
  const auto input = aio::Stream::over(std::move(executor), base::Fd(::dup(0)), base::Fd());
  char ignored[64];
  for (;;) {
    const auto got = co_await input->read(ignored, sizeof ignored);
    if (!got || *got == 0) ::_exit(0);
  }
}

}  // namespace

int run_envd(const EnvdOptions& options) {
  settle_in();
  const auto work = [&options](Memo memo) { return serve_daemon(options, std::move(memo)); };
  if (::getpid() == 1) return supervise("{}", work);
  return work(Memo(base::Fd(), "{}"));
}

int run_executor(const RunOptions& options) {
  settle_in();
  if (RuntimeFolder::is_taken(options.runtime_folder)) {
    base::log::error("another executor is at work", {{"folder", options.runtime_folder}});
    return kExitLocked;
  }
  // Before the lock: a start whose starter died must not keep the next one out.
  tell_starter(wire::kWaitingLine);
  const std::string secrets = read_secrets_line();
  const auto json = base::parse_json(secrets);
  const auto read = json ? wire::start_secrets_from_json(*json) : json.error();
  if (!read) {
    base::log::error("stdin must begin with one line of start secrets", {{"error", read.error()}});
    return kExitBadSecrets;
  }
  auto folder = RuntimeFolder::open(options.runtime_folder);
  if (!folder) {
    base::log::error("cannot use the runtime folder", {{"error", folder.error()}});
    return folder.error().code == base::ErrorCode::kConflict ? kExitLocked : kExitBadFolder;
  }
  if (!options.log_file.empty()) {
    if (const auto opened = log_to(options.log_file); !opened) {
      base::log::error("cannot use the log file", {{"error", opened.error()}});
      return kExitBadFolder;
    }
  }
  return supervise(secrets, [&](Memo memo) {
    return serve_admin(options, *std::move(folder), std::move(memo));
  });
}

int run_stand_in() {
  settle_in();
  base::log::configure(base::log::Level::kWarn, base::log::Format::kText);
  const auto limits = aio::limits_within(base::raise_descriptor_limit().now);
  aio::Loop loop;
  const base::SystemClock clock;
  StandIn stand_in(loop.executor(), clock);
  aio::HttpServer envd(
      loop.executor(), [&stand_in](auto exchange) { return stand_in.serve_envd(exchange); },
      limits);
  aio::HttpServer executors(
      loop.executor(), [&stand_in](auto exchange) { return stand_in.serve_executors(exchange); },
      limits);
  const auto envd_at = envd.listen("127.0.0.1", 0);
  const auto executors_at = executors.listen("127.0.0.1", 0);
  if (!envd_at || !executors_at) {
    base::log::error("cannot listen", {{"error", (envd_at ? executors_at : envd_at).error()}});
    return kExitCannotListen;
  }
  aio::TaskGroup tasks(loop.executor());
  tasks.spawn(stand_in.watch_the_clock());
  // By the port that each would have inside a sandbox.
  const base::Json told = {{"envdVersion", kEnvdVersion},
                           {"ports",
                            {{std::to_string(EnvdOptions{}.port), *envd_at},
                             {std::to_string(wire::kExecutorPort), *executors_at}}}};
  tell_starter(base::to_text(told));
  return loop.run(until_stdin_ends(loop.executor()));
}

}  // namespace executor
