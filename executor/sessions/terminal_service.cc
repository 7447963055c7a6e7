#include "executor/sessions/terminal_service.h"

#include <utility>

#include "executor/sessions/process_words.h"
#include "executor/sessions/serving.h"
#include "libs/base/signals.h"
#include "libs/wire/frames/terminal_operations.h"

namespace executor {
namespace {

using CallPointer = std::shared_ptr<Call>;

// Where and for whom.
struct Site {
  Subprocesses& processes;
  aio::Background& background;
  CallPointer call;
  Caller caller;
};

aio::Task<> run(Site site, wire::ResizeTerminalArgs args) {
  const auto process = co_await site.processes.find_begun(site.caller, args.handle);
  if (!process) co_return site.call->fail(failure_of(process.error()));
  const auto resized = (*process)->resize(size_of(args.size));
  if (!resized) co_return site.call->fail(failure_of(resized.error()));
  site.call->reply(wire::ResizeTerminalArgs::Ok{});
}

std::optional<bool> is_waiting(InputWaiting waiting) {
  if (waiting == InputWaiting::kUnknown) return std::nullopt;
  return waiting == InputWaiting::kYes;
}

aio::Task<> run(Site site, wire::ForegroundArgs args) {
  const auto process = co_await site.processes.find_begun(site.caller, args.handle);
  if (!process) co_return site.call->fail(failure_of(process.error()));
  const auto found = co_await (*process)->foreground(site.background, args.typed.value_or(0));
  if (!found) co_return site.call->fail(failure_of(found.error()));
  wire::ForegroundArgs::Ok ok;
  if (*found) ok = {(*found)->group, is_waiting((*found)->waiting)};
  site.call->reply(ok);
}

aio::Task<> run(Site site, wire::SignalForegroundArgs args) {
  const auto number = base::signal_number(args.signal);
  if (!number) co_return site.call->fail(no_such_signal(args.signal));
  const auto process = co_await site.processes.find_begun(site.caller, args.handle);
  if (!process) co_return site.call->fail(failure_of(process.error()));
  co_await (*process)->until_passed_on(args.typed.value_or(0));
  const auto group = (*process)->signal_foreground(*number);
  if (!group) co_return site.call->fail(failure_of(group.error()));
  site.call->reply(wire::SignalForegroundArgs::Ok{*group});
}

}  // namespace

std::optional<aio::Task<>> TerminalService::serve(const CallPointer& call, Permission permission) {
  Site site{processes_, background_, call, {call->session(), std::move(permission)}};
  return serve_one_of<wire::ResizeTerminalArgs, wire::ForegroundArgs, wire::SignalForegroundArgs>(
      std::move(site));
}

}  // namespace executor
