#include "executor/sessions/process_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/sessions/process_words.h"
#include "executor/sessions/serving.h"
#include "libs/base/signals.h"
#include "libs/wire/frames/process_operations.h"

namespace executor {
namespace {

using wire::FailureCode;
using CallPointer = std::shared_ptr<Call>;

constexpr std::size_t kPageBytesMax = 512u << 10;  // Of entries, so that a page fits into a frame.
constexpr std::size_t kListedArgvBytesMax = 64u << 10;  // Of one; the rest is left out.
constexpr base::Milliseconds kWaitMax{kGraceMsMax};     // What a timer can be set to.

// Where and for whom.
struct Site {
  Subprocesses& processes;
  ProcessStreams& streams;
  CallPointer call;
  Caller caller;
  std::string cwd;
  std::shared_ptr<std::size_t> held;
};

// A part of what all calls may hold together; given back at its end.
class Share {
 public:
  explicit Share(std::shared_ptr<std::size_t> held) : held_(std::move(held)) {}
  ~Share() { *held_ -= bytes_; }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

  bool grow(std::size_t bytes) {
    if (*held_ + bytes > ProcessService::kHeldBytesMax) return false;
    *held_ += bytes;
    bytes_ += bytes;
    return true;
  }

 private:
  std::shared_ptr<std::size_t> held_;
  std::size_t bytes_ = 0;
};

ProcessFailure too_much_at_once() {
  return ProcessFailure(ProcessFault::kBusy, "too much is read and written at once");
}
ProcessFailure given_up() {
  return ProcessFailure(ProcessFault::kCancelled, "it was given up before it began");
}

// Whether the streams that the arguments name are those that the request opens, each once and each
// its way.
bool opens(const wire::Request& request, std::vector<std::uint32_t> to_client,
           std::vector<std::uint32_t> to_server) {
  std::vector<std::uint32_t> down, up;
  for (const wire::OpenedStream& stream : request.streams)
    (stream.limit ? down : up).push_back(stream.id);
  for (auto* ids : {&to_client, &to_server, &down, &up}) std::ranges::sort(*ids);
  return down == to_client && up == to_server;
}
constexpr std::string_view kOtherStreams =
    "\"streams\" are not those that the arguments name: outputs with a limit, stdin without one";

aio::Task<> run(Site site, wire::ResolveExecutableArgs args) {
  auto path =
      co_await site.processes.resolve_executable(std::move(args.command), std::move(args.env));
  if (!path) co_return site.call->fail(failure_of(path.error()));
  site.call->reply(wire::ResolveExecutableArgs::Ok{*std::move(path)});
}

// Where an output is sent, if anywhere.
std::optional<std::uint32_t> stream_of(const wire::OutputMode& mode) {
  if (const auto* pipe = std::get_if<wire::Pipe>(&mode)) return pipe->stream;
  if (const auto* collected = std::get_if<wire::Collected>(&mode)) return collected->stream;
  return std::nullopt;
}

bool names_its_streams(const wire::SpawnArgs& args, const wire::Request& request) {
  std::vector<std::uint32_t> to_client, to_server;
  for (const auto* mode : {&args.out, &args.err})
    if (const auto stream = stream_of(*mode)) to_client.push_back(*stream);
  if (const auto* pipe = std::get_if<wire::Pipe>(&args.in)) to_server.push_back(pipe->stream);
  return opens(request, to_client, to_server);
}

// All that is uploaded for a stdin.
aio::Task<ProcessResult<std::string>> upload(CallPointer call, std::shared_ptr<Share> share) {
  std::string bytes;
  for (;;) {
    const auto piece = co_await call->take();
    if (!piece) co_return given_up();
    if (bytes.size() + piece->bytes.size() > kDataBytesMax)
      co_return ProcessFailure(ProcessFault::kInvalid, "the data for stdin are too long");
    if (!share->grow(piece->bytes.size())) co_return too_much_at_once();
    bytes += piece->bytes;
    if (piece->end) co_return bytes;
  }
}

aio::Task<> run(Site site, wire::SpawnArgs args) {
  Call& call = *site.call;
  if (!names_its_streams(args, call.request()))
    co_return call.fail(wire::failure(FailureCode::kInvalid, kOtherStreams));
  // Its session may have ended before this was begun.
  if (call.given_up()) co_return call.fail(failure_of(given_up()));
  const auto share = std::make_shared<Share>(site.held);
  std::optional<Subprocesses::Upload> data;
  if (std::holds_alternative<wire::StdinData>(args.in)) data.emplace(upload(site.call, share));
  const auto spawned =
      co_await site.processes.spawn(site.caller, request_of(args, site.cwd), std::move(data));
  if (!spawned) co_return call.fail(failure_of(spawned.error()));
  const auto& process = *spawned;
  if (const auto* pipe = std::get_if<wire::Pipe>(&args.in))
    site.streams.carry_input(process, {call.session(), pipe->stream});
  if (const auto stream = stream_of(args.out))
    site.streams.carry_whole(process, ProcessEnd::kOut, {call.session(), *stream});
  if (const auto stream = stream_of(args.err))
    site.streams.carry_whole(process, ProcessEnd::kErrors, {call.session(), *stream});
  call.reply(wire::SpawnArgs::Ok{process->state().pid});
}

ProcessFailure goes_nowhere(std::string_view which) {
  return ProcessFailure(ProcessFault::kInvalid, "the process was started without that ", which);
}

aio::Task<> until_too_late(CallPointer call, std::optional<std::int64_t> timeout_ms) {
  if (!timeout_ms) co_return co_await call->until_given_up();
  const auto timeout = std::min(base::Milliseconds(*timeout_ms), kWaitMax);
  co_await aio::race(aio::sleep_for(timeout), call->until_given_up());
}

aio::Task<> run(Site site, wire::ReadOutputArgs args) {
  Call& call = *site.call;
  const auto process = co_await site.processes.find_begun(site.caller, args.handle);
  if (!process) co_return call.fail(failure_of(process.error()));
  const auto& output =
      args.output == wire::OutputName::kStdout ? (*process)->out() : (*process)->errors();
  if (!output) co_return call.fail(failure_of(goes_nowhere("output")));
  if (args.wait_ms)
    co_await aio::race(output->wait_for(args.from), until_too_late(site.call, args.wait_ms));
  auto piece = output->read(args.from, static_cast<std::size_t>(args.bytes_max));
  if (!piece) co_return call.fail(failure_of(piece.error()));
  Share share(site.held);
  if (!share.grow(piece->bytes.size())) co_return call.fail(failure_of(too_much_at_once()));
  call.reply(wire::ReadOutputArgs::Ok{piece->begin, piece->next, piece->lossy, piece->ended,
                                      piece->spill_path});
  if (co_await call.append(std::move(piece->bytes))) call.end();
}

Milestone milestone_of(wire::WaitUntil until) {
  switch (until) {
    case wire::WaitUntil::kExit:
      return Milestone::kExit;
    case wire::WaitUntil::kSettled:
      return Milestone::kSettled;
    case wire::WaitUntil::kEmpty:
      return Milestone::kEmpty;
  }
  return Milestone::kExit;
}

aio::Task<> until_reached(std::shared_ptr<Subprocess> process, Milestone milestone) {
  static_cast<void>(co_await process->until(milestone));
}

aio::Task<> run(Site site, wire::WaitArgs args) {
  Call& call = *site.call;
  const auto process = co_await site.processes.find_begun(site.caller, args.handle);
  if (!process) co_return call.fail(failure_of(process.error()));
  const Milestone milestone = milestone_of(args.until);
  if (args.timeout_ms != 0)
    co_await aio::race(until_reached(*process, milestone),
                       until_too_late(site.call, args.timeout_ms));
  const auto reached = (*process)->look(milestone);
  if (!reached) co_return call.fail(failure_of(reached.error()));
  call.reply(wire::WaitArgs::Ok{*reached, state_of((*process)->state())});
}

Reach reach_of(wire::SignalArgs::To to) {
  switch (to) {
    case wire::SignalArgs::To::kLeader:
      return Reach::kCommand;
    case wire::SignalArgs::To::kGroup:
      return Reach::kGroup;
    case wire::SignalArgs::To::kTree:
      return Reach::kTree;
  }
  return Reach::kGroup;
}

aio::Task<> run(Site site, wire::SignalArgs args) {
  Call& call = *site.call;
  const auto number = base::signal_number(args.signal);
  if (!number) co_return call.fail(no_such_signal(args.signal));
  const auto process = co_await site.processes.find_begun(site.caller, args.handle);
  if (!process) co_return call.fail(failure_of(process.error()));
  const auto reached = (*process)->signal(*number, reach_of(args.to));
  if (!reached) co_return call.fail(failure_of(reached.error()));
  call.reply(wire::SignalArgs::Ok{*reached > 0});
}

aio::Task<> run(Site site, wire::TerminateArgs args) {
  std::optional<base::Milliseconds> grace;
  if (args.grace_ms) grace = base::Milliseconds(*args.grace_ms);
  const auto begun = site.processes.terminate(site.caller, args.handle, grace);
  if (!begun) co_return site.call->fail(failure_of(begun.error()));
  site.call->reply(wire::TerminateArgs::Ok{});
}

// Why the ends that it names cannot be attached to; nothing when they can.
std::optional<ProcessFailure> objection(const wire::AttachArgs& args, const Subprocess& process) {
  if (args.in && !(process.input() && std::holds_alternative<Piped>(process.request().stdin_mode)))
    return goes_nowhere("stdin");
  const std::pair<const std::optional<wire::AttachedOutput>&, const std::shared_ptr<ProcessOutput>&>
      ends[] = {{args.out, process.out()}, {args.err, process.errors()}};
  for (const auto& [asked, output] : ends) {
    if (!asked) continue;
    if (!output) return goes_nowhere("output");
    if (asked->from > output->state().bytes)
      return ProcessFailure(ProcessFault::kInvalid, "nothing was written yet at that offset");
  }
  return std::nullopt;
}

bool names_its_streams(const wire::AttachArgs& args, const wire::Request& request) {
  std::vector<std::uint32_t> to_client, to_server;
  for (const auto* output : {&args.out, &args.err})
    if (*output) to_client.push_back((*output)->stream);
  if (args.in) to_server.push_back(*args.in);
  return opens(request, to_client, to_server);
}

aio::Task<> run(Site site, wire::AttachArgs args) {
  Call& call = *site.call;
  if (!names_its_streams(args, call.request()))
    co_return call.fail(wire::failure(FailureCode::kInvalid, kOtherStreams));
  const auto found = co_await site.processes.find_begun(site.caller, args.handle);
  if (!found) co_return call.fail(failure_of(found.error()));
  const auto& process = *found;
  if (const auto why_not = objection(args, *process)) co_return call.fail(failure_of(*why_not));
  if (call.given_up()) co_return call.fail(failure_of(given_up()));
  if (args.adopt) process->adopt(call.session());
  wire::AttachArgs::Ok ok;
  if (args.in) ok.stdin_at = site.streams.carry_input(process, {call.session(), *args.in});
  if (args.out)
    ok.out = site.streams.carry_output(process, ProcessEnd::kOut,
                                       {call.session(), args.out->stream}, args.out->from);
  if (args.err)
    ok.err = site.streams.carry_output(process, ProcessEnd::kErrors,
                                       {call.session(), args.err->stream}, args.err->from);
  ok.state = state_of(process->state());
  call.reply(ok);
}

aio::Task<> run(Site site, wire::ReleaseArgs args) {
  co_await site.processes.until_begun(args.handle);
  const auto released = site.processes.release(site.caller, args.handle);
  if (!released) co_return site.call->fail(failure_of(released.error()));
  site.call->reply(wire::ReleaseArgs::Ok{});
}

wire::ListedProcess entry_of(const Subprocess& process, const std::string& session) {
  wire::ListedProcess entry{.handle = process.request().id,
                            .mine = process.session() == session,
                            .state = state_of(process.state())};
  std::size_t bytes = 0;
  for (const std::string& argument : process.request().argv) {
    bytes += argument.size() + 1;
    if (bytes > kListedArgvBytesMax) break;
    entry.argv.push_back(argument);
  }
  return entry;
}

aio::Task<> run(Site site, wire::ListProcessesArgs args) {
  const auto wanted = static_cast<std::size_t>(args.page_entries);
  const auto found = site.processes.list(site.caller, args.after.value_or(""), wanted + 1);
  wire::ListProcessesArgs::Ok ok;
  std::size_t bytes = 0;
  for (const auto& process : found) {
    wire::ListedProcess entry = entry_of(*process, site.caller.session);
    bytes += base::to_text(wire::to_json(entry)).size();
    ok.more = ok.processes.size() == wanted || bytes > kPageBytesMax;
    if (ok.more) break;
    ok.processes.push_back(std::move(entry));
  }
  site.call->reply(ok);
  co_return;
}

}  // namespace

std::optional<aio::Task<>> ProcessService::serve(const std::shared_ptr<Call>& call,
                                                 Permission permission) {
  Site site{processes_, streams_, call, {call->session(), std::move(permission)}, cwd_, held_};
  return serve_one_of<wire::ResolveExecutableArgs, wire::SpawnArgs, wire::ReadOutputArgs,
                      wire::WaitArgs, wire::SignalArgs, wire::TerminateArgs, wire::AttachArgs,
                      wire::ReleaseArgs, wire::ListProcessesArgs>(std::move(site));
}

}  // namespace executor
