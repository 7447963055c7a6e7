#include "executor/subprocess/subprocesses.h"

#include <algorithm>

#include "executor/confine/landlock.h"
#include "executor/subprocess/resolve.h"

namespace executor {
namespace {

ProcessFailure busy(std::string_view why) { return ProcessFailure(ProcessFault::kBusy, why); }
ProcessFailure wider() {
  return ProcessFailure(ProcessFault::kDenied,
                        "the process was started under a wider permission mode");
}
ProcessFailure ended_before() {
  return ProcessFailure(ProcessFault::kCancelled, "it was ended before it began");
}

}  // namespace

Subprocesses::Subprocesses(SubprocessSite site)
    : site_(std::move(site)), under_way_(std::make_shared<UnderWay>(site_.executor)) {}

Subprocesses::~Subprocesses() {
  for (const auto& [id, known] : known_) known.process->drop();
}

ProcessResult<base::Done> Subprocesses::admit(const Caller& caller, const SpawnRequest& request) {
  CHECK_OK(check(request));
  if (under_way_->ending.contains(caller.session)) return busy("the session is being ended");
  if (known_.contains(request.id) || under_way_->starting.contains(request.id))
    return ProcessFailure(ProcessFault::kConflict, "the handle is taken; attach to it instead");
  note_what_is_over();
  const auto running = std::count_if(known_.begin(), known_.end(),
                                     [](const auto& one) { return !one.second.process->over(); });
  if (static_cast<std::size_t>(running) + under_way_->starting.size() >= site_.limits.running_max)
    return busy("too many processes run at once; end some first");
  const auto bytes =
      ProcessOutput::bytes_max(request.stdout_mode) + ProcessOutput::bytes_max(request.stderr_mode);
  if (!make_room_for(bytes))
    return busy("the outputs of what runs may take all there is; end some, or collect less");
  return base::Done{};
}

std::int64_t Subprocesses::held_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [id, known] : known_)
    bytes += known.process->over() ? known.process->held() : known.process->may_hold();
  return bytes;
}

bool Subprocesses::make_room_for(std::int64_t bytes) {
  while (held_bytes() + bytes > site_.limits.held_bytes_max)
    if (!forget_oldest_over()) return false;
  return true;
}

bool Subprocesses::forget_oldest_over() {
  auto oldest = known_.end();
  for (auto one = known_.begin(); one != known_.end(); ++one) {
    if (!one->second.over_since) continue;
    if (oldest == known_.end() || *one->second.over_since < *oldest->second.over_since)
      oldest = one;
  }
  if (oldest == known_.end()) return false;
  forget(oldest);
  return true;
}

void Subprocesses::forget(std::map<std::string, Known>::iterator one) {
  one->second.process->drop();
  known_.erase(one);
}

void Subprocesses::note_what_is_over() {
  std::size_t over = 0;
  for (auto& [id, known] : known_) {
    if (!known.process->over()) continue;
    if (!known.over_since) known.over_since = awake_;
    ++over;
  }
  for (; over > site_.limits.over_max; --over) forget_oldest_over();
}

Launch Subprocesses::launch_for(const SpawnRequest& request) const {
  Launch launch;
  launch.argv = request.argv;
  launch.env = environment_for(
      request.terminal ? with_terminal(site_.environment, site_.user.shell) : site_.environment,
      request.env);
  launch.terminal = request.terminal;
  launch.cwd = request.cwd;
  launch.user = site_.user;
  launch.keep_stdin = !std::holds_alternative<Ignored>(request.stdin_mode);
  launch.discard_stdout = std::holds_alternative<Ignored>(request.stdout_mode);
  launch.discard_stderr = std::holds_alternative<Ignored>(request.stderr_mode);
  launch.like_a_shell = false;
  launch.descriptors = site_.descriptors;
  return launch;
}

aio::Task<ProcessResult<std::shared_ptr<const base::Fd>>> Subprocesses::confine(
    Permission permission) {
  if (permission.mode == PermissionMode::kDangerFullAccess)
    co_return std::shared_ptr<const base::Fd>();
  auto made = co_await site_.background.run([permission] { return make_confinement(permission); });
  if (!made) co_return ProcessFailure(ProcessFault::kConfinementUnavailable, made.error().message);
  co_return std::make_shared<const base::Fd>(*std::move(made));
}

ProcessResult<std::shared_ptr<Subprocess>> Subprocesses::begin(
    const Caller& caller, SpawnRequest request, std::shared_ptr<const base::Fd> confinement) {
  Launch launch = launch_for(request);
  launch.confinement = std::move(confinement);
  auto contained = site_.containments.begin(std::move(launch));
  if (!contained) return busy(contained.error().message);
  std::shared_ptr<const Terminal> terminal;
  if (request.terminal) {
    auto held =
        hold_terminal(contained->ends, !std::holds_alternative<Ignored>(request.stdin_mode));
    if (!held) return busy(held.error().message);
    terminal = *std::move(held);
  }
  const Subprocess::Origin origin{request.detached ? std::string() : caller.session,
                                  caller.permission.mode, site_.limits.killed_within};
  auto process =
      std::make_shared<Subprocess>(site_.executor, std::move(request), origin,
                                   *std::move(contained), std::move(terminal), site_.spills);
  process->start();
  known_.emplace(process->request().id, Known{process, std::nullopt});
  return process;
}

aio::Task<ProcessResult<std::shared_ptr<Subprocess>>> Subprocesses::spawn(
    Caller caller, SpawnRequest request, std::optional<Upload> data) {
  CO_CHECK_OK(admit(caller, request));
  const std::string id = request.id;
  // Whatever ends the wait, the handle is free again.
  struct Place {
    std::shared_ptr<UnderWay> all;
    const std::string& id;
    ~Place() {
      all->starting.erase(id);
      all->moved.notify_all();
    }
  };
  std::shared_ptr<Subprocess> process;
  {
    const auto starting =
        under_way_->starting.emplace(id, Starting{caller.session, caller.permission.mode}).first;
    const Place place{under_way_, id};
    if (data) {
      std::optional<ProcessResult<std::string>> given;
      co_await aio::race(aio::keep_result(*std::move(data), given),
                         until_terminated(starting->second));
      if (!given) co_return ended_before();
      CO_TRY(auto bytes, *std::move(given));
      request.stdin_mode = Data{std::move(bytes)};
    }
    CO_TRY(auto confinement, co_await confine(caller.permission));
    if (starting->second.terminated) co_return ended_before();
    CO_TRY(process, begin(caller, std::move(request), std::move(confinement)));
  }
  CO_CHECK_OK(co_await process->until_begun());
  co_return process;
}

void Subprocesses::end_before_the_begin(Starting& starting) {
  starting.terminated = true;
  under_way_->moved.notify_all();
}

aio::Task<> Subprocesses::until_terminated(const Starting& starting) {
  while (!starting.terminated) co_await under_way_->moved.wait();
}

aio::Task<> Subprocesses::until_begun(std::string id) {
  while (under_way_->starting.contains(id)) co_await under_way_->moved.wait();
}

aio::Task<ProcessResult<std::shared_ptr<Subprocess>>> Subprocesses::find_begun(Caller caller,
                                                                               std::string id) {
  co_await until_begun(id);
  co_return find(caller, id);
}

ProcessResult<std::shared_ptr<Subprocess>> Subprocesses::find(const Caller& caller,
                                                              const std::string& id) const {
  const auto one = known_.find(id);
  if (one == known_.end()) return ProcessFailure(ProcessFault::kNotFound, "no such handle");
  const auto& process = one->second.process;
  if (is_wider(process->mode(), caller.permission.mode)) return wider();
  if (process->lost())
    return ProcessFailure(ProcessFault::kLost, "the process went with its incarnation");
  return process;
}

ProcessResult<base::Done> Subprocesses::terminate(const Caller& caller, const std::string& id,
                                                  std::optional<base::Milliseconds> grace) {
  if (const auto starting = under_way_->starting.find(id); starting != under_way_->starting.end()) {
    if (is_wider(starting->second.mode, caller.permission.mode)) return wider();
    end_before_the_begin(starting->second);
    return base::Done{};
  }
  TRY(const auto process, find(caller, id));
  process->terminate(grace.value_or(base::Milliseconds(process->request().grace_ms)));
  return base::Done{};
}

ProcessResult<base::Done> Subprocesses::adopt(const Caller& caller, const std::string& id) {
  TRY(const auto process, find(caller, id));
  process->adopt(caller.session);
  return base::Done{};
}

ProcessResult<base::Done> Subprocesses::release(const Caller& caller, const std::string& id) {
  TRY(const auto process, find(caller, id));
  if (!process->over())
    return ProcessFailure(ProcessFault::kConflict, "something of it still lives");
  forget(known_.find(id));
  return base::Done{};
}

std::vector<std::shared_ptr<Subprocess>> Subprocesses::list(const Caller& caller,
                                                            const std::string& after,
                                                            std::size_t count_max) const {
  std::vector<std::shared_ptr<Subprocess>> found;
  for (auto one = known_.upper_bound(after); one != known_.end() && found.size() < count_max; ++one)
    if (const auto process = find(caller, one->first)) found.push_back(*process);
  return found;
}

aio::Task<ProcessResult<std::string>> Subprocesses::resolve_executable(std::string command,
                                                                       EnvironmentChanges changes) {
  CO_CHECK_OK(check(changes));
  const auto environment = environment_for(site_.environment, changes);
  auto resolved = std::make_shared<std::optional<ProcessResult<std::string>>>();
  const auto looked = co_await site_.background.run([=]() -> base::Result<base::Done> {
    resolved->emplace(executor::resolve_executable(command, environment));
    return base::Done{};
  });
  if (!looked) co_return busy(looked.error().message);
  co_return **resolved;
}

aio::Task<ProcessResult<base::Done>> Subprocesses::end_session(std::string session) {
  // Two may end one session at once: both wait, and it stays closed until the last is through.
  under_way_->ending.insert(session);
  struct Ending {
    std::shared_ptr<UnderWay> all;
    const std::string& session;
    ~Ending() { all->ending.erase(all->ending.find(session)); }
  } const ending{under_way_, session};
  for (auto& [id, starting] : under_way_->starting)
    if (starting.session == session) end_before_the_begin(starting);
  std::vector<std::shared_ptr<Subprocess>> its;
  for (const auto& [id, known] : known_)
    if (known.process->session() == session) its.push_back(known.process);
  for (const auto& process : its)
    process->terminate(std::min(base::Milliseconds(process->request().grace_ms), kGraceAtEndMax));
  std::size_t unproven = 0;
  for (const auto& process : its) {
    if (!co_await process->join()) ++unproven;
    const auto one = known_.find(process->request().id);
    const bool known = one != known_.end() && one->second.process == process;
    if (known && process->over()) forget(one);
  }
  if (unproven > 0)
    co_return ProcessFailure(ProcessFault::kTerminateFailed, std::to_string(unproven), " of ",
                             std::to_string(its.size()),
                             " processes of the session could not be ended for certain");
  co_return base::Done{};
}

void Subprocesses::lose_all() {
  for (auto& [id, starting] : under_way_->starting) end_before_the_begin(starting);
  for (const auto& [id, known] : known_) known.process->lose();
}

aio::Task<> Subprocesses::end_all() {
  lose_all();
  std::vector<std::shared_ptr<Subprocess>> all;
  all.reserve(known_.size());
  for (const auto& [id, known] : known_) all.push_back(known.process);
  for (const auto& process : all) co_await process->join();
}

void Subprocesses::tick() {
  awake_ += kTick;
  note_what_is_over();
  std::erase_if(known_, [this](const auto& one) {
    const bool old =
        one.second.over_since && awake_ - *one.second.over_since >= site_.limits.over_kept;
    if (old) one.second.process->drop();
    return old;
  });
  site_.containments.tend(base::SystemClock().now());
}

aio::Task<> Subprocesses::tend() {
  for (;;) {
    co_await aio::sleep_for(kTick);
    tick();
  }
}

}  // namespace executor
