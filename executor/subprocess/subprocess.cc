#include "executor/subprocess/subprocess.h"

#include <signal.h>

#include <algorithm>
#include <cstring>

#include "libs/base/kernel_files.h"

namespace executor {
namespace {

constexpr std::string_view kLost = "the process went with its incarnation";
constexpr std::string_view kForgotten = "the process was forgotten";

// How soon it is seen that a shell in a terminal has nobody left to wait for.
constexpr base::Milliseconds kLookAgainFirst{10}, kLookAgainLast{500};

base::Moment now() { return base::SystemClock().now(); }

ProcessFailure spawn_failure(const LaunchFailure& launch, const SpawnRequest& request) {
  Launch wanted;
  wanted.argv = request.argv;
  wanted.cwd = request.cwd;
  ProcessFailure failure(ProcessFault::kSpawnFailed, describe(launch, wanted).message);
  failure.error_number = launch.error_number;
  failure.step = launch.step == LaunchStep::kFolder    ? ProcessFailure::Step::kFolder
                 : launch.step == LaunchStep::kProgram ? ProcessFailure::Step::kProgram
                                                       : ProcessFailure::Step::kResources;
  return failure;
}

// Of those in `pids`, the ones in the process group of `leader`.
std::vector<pid_t> only_group(std::vector<pid_t> pids, pid_t leader) {
  std::erase_if(pids, [leader](pid_t pid) {
    const auto facts = base::look_at_process(pid);
    return !facts || facts->group != leader;
  });
  return pids;
}

}  // namespace

Subprocess::Subprocess(aio::Executor executor, SpawnRequest request, Origin origin,
                       Contained contained, std::shared_ptr<const Terminal> terminal,
                       std::shared_ptr<SpillFolder> spills)
    : executor_(executor),
      request_(std::move(request)),
      origin_(std::move(origin)),
      begun_(now()),
      tree_(std::move(contained.tree)),
      report_(std::move(contained.ends.report)),
      out_(open(std::move(contained.ends.stdout_end), request_.stdout_mode, spills)),
      errors_(open(std::move(contained.ends.stderr_end), request_.stderr_mode, spills)),
      terminal_(std::move(terminal)),
      changed_(executor),
      tasks_(executor) {
  if (contained.ends.stdin_end)
    input_ = std::make_shared<ProcessInput>(executor, std::move(contained.ends.stdin_end));
  if (auto* data = std::get_if<Data>(&request_.stdin_mode); data && input_) {
    input_->append(std::exchange(data->bytes, {}));
    static_cast<void>(input_->end_at(input_->arrived()));
  }
}

std::shared_ptr<ProcessOutput> Subprocess::open(base::Fd end, const OutputMode& mode,
                                                const std::shared_ptr<SpillFolder>& spills) {
  if (!end) return nullptr;
  return std::make_shared<ProcessOutput>(executor_, std::move(end), mode, spills);
}

void Subprocess::start() {
  const auto self = shared_from_this();
  tasks_.spawn(
      learn_how_it_began(self, aio::Stream::over(executor_, std::move(report_), base::Fd())));
  tasks_.spawn(follow(self));
  if (input_) tasks_.spawn(ProcessInput::carry(input_));
  if (out_) tasks_.spawn(ProcessOutput::carry(out_));
  if (errors_) tasks_.spawn(ProcessOutput::carry(errors_));
}

void Subprocess::drop() {
  tasks_.cancel();
  if (!empty_) static_cast<void>(tree_->kill());
  dropped_ = true;
  close_terminal(kForgotten);
  fail_outputs(ProcessFailure(ProcessFault::kNotFound, kForgotten));
  changed_.notify_all();
}

void Subprocess::fail_outputs(const ProcessFailure& why) {
  for (const auto& output : {out_, errors_})
    if (output) output->fail(why);
}

aio::Task<> Subprocess::learn_how_it_began(std::shared_ptr<Subprocess> self,
                                           std::shared_ptr<aio::Stream> report) {
  LaunchFailure failure{};
  const auto got = co_await report->read(reinterpret_cast<char*>(&failure), sizeof failure);
  if (!got && got.error().code == base::ErrorCode::kCancelled) co_return;
  if (got && *got == sizeof failure) self->failure_ = spawn_failure(failure, self->request_);
  self->launched_ = true;
  self->changed_.notify_all();
}

aio::Task<> Subprocess::follow(std::shared_ptr<Subprocess> self) {
  const TreeNews news{.begun = [&self](pid_t pid) { self->hear_begun(pid); },
                      .exited = [&self](const Exit& exit) { self->hear_exited(exit); }};
  const auto emptied = co_await self->tree_->watch(news);
  if (emptied) {
    self->empty_ = true;
  } else if (emptied.error().code == base::ErrorCode::kCancelled) {
    co_return;
  } else {
    self->unproven_ = ProcessFailure(ProcessFault::kTerminateFailed, emptied.error().message);
    self->close_terminal("the command in the terminal is not known about any more");
  }
  self->changed_.notify_all();
}

void Subprocess::hear_begun(pid_t pid) {
  pid_ = pid;
  changed_.notify_all();
}

void Subprocess::hear_exited(const Exit& exit) {
  exit_ = exit;
  tasks_.spawn(settle(shared_from_this()));
  if (terminal_) {
    // The session of the terminal is over: whoever is left is swept.
    close_terminal("the command in the terminal has ended");
    terminate(base::Milliseconds(request_.grace_ms));
  }
  changed_.notify_all();
}

// A pipe has its natural end; what is collected is not waited for beyond the grace.
aio::Task<> Subprocess::settle(std::shared_ptr<Subprocess> self) {
  const base::Moment give_up_at = now() + base::Milliseconds(self->request_.grace_ms);
  const std::vector<std::shared_ptr<ProcessOutput>> outputs = {self->out_, self->errors_};
  for (const auto& output : outputs) {
    if (!output) continue;
    while (!output->ended() && !(output->collects() && now() >= give_up_at)) {
      if (!output->collects())
        co_await output->wait_for_end();
      else
        co_await aio::race(output->wait_for_end(), aio::sleep_until(give_up_at));
    }
    if (output->collects()) output->give_up();
  }
  self->settled_ = true;
  self->changed_.notify_all();
}

bool Subprocess::reached(Milestone milestone) const {
  switch (milestone) {
    case Milestone::kExit:
      return exit_.has_value();
    case Milestone::kSettled:
      return settled_;
    case Milestone::kEmpty:
      return empty_;
  }
  return false;
}

std::optional<ProcessFailure> Subprocess::obstacle(Milestone milestone) const {
  if (lost_) return ProcessFailure(ProcessFault::kLost, kLost);
  if (dropped_) return ProcessFailure(ProcessFault::kNotFound, kForgotten);
  if (milestone != Milestone::kEmpty && failure_) return failure_;
  if (unproven_) return unproven_;
  if (milestone == Milestone::kEmpty && failed_to_end_)
    return ProcessFailure(ProcessFault::kTerminateFailed, std::to_string(tree_->members().size()),
                          " members of the tree are still there after a kill");
  return std::nullopt;
}

aio::Task<ProcessResult<base::Done>> Subprocess::until_begun() {
  const auto self = shared_from_this();
  while (!failure_ && !lost_ && !dropped_ && !unproven_ && !(launched_ && pid_ > 0))
    co_await changed_.wait();
  if (auto why_not = obstacle(Milestone::kExit)) co_return *std::move(why_not);
  co_return base::Done{};
}

ProcessResult<bool> Subprocess::look(Milestone milestone) const {
  // What is proven of one that is lost is of no use to anybody.
  const bool counts = !lost_ && (!failure_ || milestone == Milestone::kEmpty);
  if (counts && reached(milestone)) return true;
  if (auto why_not = obstacle(milestone)) return *std::move(why_not);
  return false;
}

aio::Task<ProcessResult<base::Done>> Subprocess::until(Milestone milestone) {
  const auto self = shared_from_this();
  for (;;) {
    CO_TRY(const bool is_so, look(milestone));
    if (is_so) co_return base::Done{};
    co_await changed_.wait();
  }
}

aio::Task<bool> Subprocess::join() {
  const auto self = shared_from_this();
  while (!over() && !failed_to_end_ && !dropped_) co_await changed_.wait();
  co_return empty_;
}

SubprocessState Subprocess::state() const {
  SubprocessState state{.pid = failure_ ? -1 : pid_, .exit = std::nullopt};
  if (!failure_) state.exit = exit_;
  state.settled = settled_;
  state.empty = empty_;
  if (out_) state.out = out_->state();
  if (errors_) state.errors = errors_->state();
  if (input_) state.input_arrived = input_->arrived();
  state.terminal = request_.terminal;
  state.age = std::chrono::duration_cast<base::Milliseconds>(now() - begun_);
  state.detached = origin_.session.empty();
  return state;
}

std::int64_t Subprocess::held() const {
  return (out_ ? out_->held() : 0) + (errors_ ? errors_->held() : 0) +
         (input_ ? input_->held() : 0);
}

std::int64_t Subprocess::may_hold() const {
  return ProcessOutput::bytes_max(request_.stdout_mode) +
         ProcessOutput::bytes_max(request_.stderr_mode) + (input_ ? input_->held() : 0);
}

ProcessResult<int> Subprocess::signal(int number, Reach reach) {
  if (number < 1 || number >= NSIG)
    return ProcessFailure(ProcessFault::kInvalid, "there is no such signal");
  const auto list = [&]() -> std::vector<pid_t> {
    std::vector<pid_t> members = tree_->members();
    if (reach == Reach::kGroup) return only_group(std::move(members), pid_);
    if (reach == Reach::kCommand)
      std::erase_if(members, [this](pid_t pid) { return pid != pid_ || exit_.has_value(); });
    return members;
  };
  const auto reached = signal_each(list, number);
  if (!reached) return ProcessFailure(ProcessFault::kDenied, reached.error().message);
  return *reached;
}

void Subprocess::terminate(base::Milliseconds grace) {
  if (empty_) return;
  ending_ = true;
  if (terminal_) refuse_input("the terminal is being ended");
  const base::Moment kill_at = failed_to_end_ ? now() : now() + grace;
  const bool under_way = kill_at_.has_value();
  kill_at_ = under_way ? std::min(*kill_at_, kill_at) : kill_at;
  changed_.notify_all();
  if (!under_way) tasks_.spawn(escalate(shared_from_this(), !std::exchange(failed_to_end_, false)));
}

aio::Task<> Subprocess::escalate(std::shared_ptr<Subprocess> self, bool kindly) {
  // Whom this does not reach, and who does not mind it, is killed later.
  if (kindly) {
    static_cast<void>(self->signal(SIGTERM, Reach::kTree));
    static_cast<void>(self->signal(SIGCONT, Reach::kTree));  // Who is stopped hears it then.
  }
  bool hangs_up = kindly && self->terminal_;
  for (auto pause = kLookAgainFirst; !self->empty_ && now() < *self->kill_at_;) {
    if (hangs_up) hangs_up = !self->hang_up_lonely_shell();
    const base::Moment until =
        hangs_up ? std::min(*self->kill_at_, now() + pause) : *self->kill_at_;
    pause = std::min(2 * pause, kLookAgainLast);
    co_await aio::race(self->changed_.wait(), aio::sleep_until(until));
  }
  if (!self->empty_) static_cast<void>(self->tree_->kill());
  const base::Moment dead_by = now() + self->origin_.killed_within;
  while (!self->empty_ && !self->unproven_ && now() < dead_by)
    co_await aio::race(self->changed_.wait(), aio::sleep_until(dead_by));
  self->failed_to_end_ = !self->empty_;
  self->kill_at_.reset();
  self->changed_.notify_all();
}

void Subprocess::lose() {
  lost_ = true;
  terminate(base::Milliseconds(0));
  fail_outputs(ProcessFailure(ProcessFault::kLost, kLost));
  changed_.notify_all();
}

}  // namespace executor
