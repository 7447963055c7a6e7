#include "executor/sessions/process_words.h"

#include <string.h>

#include <filesystem>
#include <utility>

#include "libs/base/signals.h"

namespace executor {
namespace {

using wire::FailureCode;

FailureCode code_of(ProcessFault fault) {
  switch (fault) {
    case ProcessFault::kInvalid:
      return FailureCode::kInvalid;
    case ProcessFault::kDenied:
      return FailureCode::kDenied;
    case ProcessFault::kNotFound:
      return FailureCode::kNotFound;
    case ProcessFault::kConflict:
      return FailureCode::kConflict;
    case ProcessFault::kBusy:
      return FailureCode::kBusy;
    case ProcessFault::kCancelled:
      return FailureCode::kCancelled;
    case ProcessFault::kLost:
      return FailureCode::kLost;
    case ProcessFault::kSpawnFailed:
      return FailureCode::kSpawnFailed;
    case ProcessFault::kExecutableNotFound:
      return FailureCode::kExecutableNotFound;
    case ProcessFault::kTerminateFailed:
      return FailureCode::kTerminateFailed;
    case ProcessFault::kConfinementUnavailable:
      return FailureCode::kConfinementUnavailable;
  }
  return FailureCode::kInternal;
}

const char* word_of(ProcessFailure::Step step) {
  switch (step) {
    case ProcessFailure::Step::kFolder:
      return "cwd";
    case ProcessFailure::Step::kProgram:
      return "exec";
    default:
      return "resources";
  }
}

std::optional<wire::OutputState> state_of(const std::optional<OutputState>& state) {
  if (!state) return std::nullopt;
  return wire::OutputState{state->bytes, state->ended, state->lossy, state->spill_path};
}

InputMode mode_of(const wire::StdinMode& mode) {
  if (std::holds_alternative<wire::Pipe>(mode)) return Piped{};
  if (std::holds_alternative<wire::StdinData>(mode)) return Data{};
  return Ignored{};
}

OutputMode mode_of(const wire::OutputMode& mode) {
  if (std::holds_alternative<wire::Pipe>(mode)) return Piped{};
  if (const auto* collected = std::get_if<wire::Collected>(&mode))
    return Collect{collected->bytes_max, collected->spill_bytes_max};
  return Ignored{};
}

}  // namespace

wire::Failure no_such_signal(const std::string& name) {
  return wire::failure(FailureCode::kInvalid, "there is no signal " + name + " here");
}

wire::Failure failure_of(const ProcessFailure& failure) {
  wire::Failure told = wire::failure(code_of(failure.fault), failure.message);
  if (failure.fault != ProcessFault::kSpawnFailed) return told;
  told.detail = base::Json{{"step", word_of(failure.step)}};
  if (const char* name = ::strerrorname_np(failure.error_number); name && failure.error_number)
    (*told.detail)["errno"] = name;
  return told;
}

wire::ProcessState state_of(const SubprocessState& state) {
  wire::ProcessState told{.pid = state.pid,
                          .exited = state.exit.has_value(),
                          .settled = state.settled,
                          .empty = state.empty,
                          .out = state_of(state.out),
                          .err = state_of(state.errors),
                          .age_ms = state.age.count(),
                          .detached = state.detached};
  if (state.terminal)
    told.terminal = wire::TerminalSize{state.terminal->rows, state.terminal->columns};
  if (state.exit && state.exit->code) told.exit_code = *state.exit->code;
  if (state.exit && state.exit->signal) told.signal = base::signal_name(*state.exit->signal);
  return told;
}

TerminalSize size_of(const wire::TerminalSize& size) {
  return {.columns = static_cast<std::uint16_t>(size.columns),
          .rows = static_cast<std::uint16_t>(size.rows)};
}

SpawnRequest request_of(const wire::SpawnArgs& args, const std::string& cwd) {
  SpawnRequest request{.id = args.handle,
                       .argv = args.argv,
                       .cwd = args.cwd ? (std::filesystem::path(cwd) / *args.cwd).string() : cwd,
                       .env = args.env,
                       .stdin_mode = mode_of(args.in),
                       .stdout_mode = mode_of(args.out),
                       .stderr_mode = mode_of(args.err),
                       .grace_ms = args.grace_ms,
                       .detached = args.detached};
  if (args.terminal) request.terminal = size_of(*args.terminal);
  return request;
}

}  // namespace executor
