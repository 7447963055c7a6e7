#include "cli/testing/scripted_processes.h"

#include <algorithm>

namespace cli {
namespace {

template <typename Args>
Args read(const wire::Request& request) {
  return *wire::from_json<Args>(request.args);
}

std::uint32_t stream_of(const wire::OutputMode& mode) {
  const auto* pipe = std::get_if<wire::Pipe>(&mode);
  return pipe ? pipe->stream : 0;
}

}  // namespace

void ScriptedProcesses::handle(wire::SessionHost& host, wire::HostEvent event) {
  if (std::holds_alternative<wire::SessionEnd>(event.what)) {
    std::erase_if(waiting_, [&](const Waiting& each) { return each.session == event.session; });
    ++sessions_ended_;
    return;
  }
  const auto* asked = std::get_if<wire::Asked>(&std::get<wire::SessionEvent>(event.what));
  if (!asked) return;
  const wire::Request& request = asked->request;
  wire::ServedSession* found = host.find(event.session);
  if (!found) return;  // It has ended meanwhile.
  wire::ServedSession& session = *found;
  if (request.op == wire::SpawnArgs::kOp) {
    spawn(session, event.session, request);
  } else if (request.op == wire::WaitArgs::kOp) {
    const auto args = read<wire::WaitArgs>(request);
    waiting_.push_back({event.session, request.id, args.handle, args.until});
  } else if (request.op == wire::SignalArgs::kOp) {
    signal(session, request);
  } else if (request.op == wire::TerminateArgs::kOp) {
    terminate(session, request);
  } else {
    list(session, request);
  }
}

void ScriptedProcesses::spawn(wire::ServedSession& session, const std::string& name,
                              const wire::Request& request) {
  spawn_ = request;
  Process process{.session = name, .args = read<wire::SpawnArgs>(request)};
  const auto& argv = process.args.argv;
  if (argv[0] == "missing") {
    auto failure = wire::failure(wire::FailureCode::kSpawnFailed, "missing: no such file");
    failure.detail = base::Json{{"errno", "ENOENT"}, {"step", "exec"}};
    return session.fail(request.id, failure);
  }
  if (argv[0] == "say") process.left = std::stoll(argv[1]);
  if (argv[0] == "code") exit(process, std::stoll(argv[1]));
  session.reply(request.id, wire::to_json(wire::SpawnArgs::Ok{process.state.pid}));
  processes_.emplace(process.args.handle, std::move(process));
}

void ScriptedProcesses::add(const std::string& handle, const std::string& command) {
  processes_[handle] = {.session = {}, .args = {.handle = handle, .argv = {command}}};
}

void ScriptedProcesses::signal(wire::ServedSession& session, const wire::Request& request) {
  const auto args = read<wire::SignalArgs>(request);
  heard_.push_back(args.signal);
  const auto found = processes_.find(args.handle);
  if (found == processes_.end())
    return session.fail(request.id, wire::failure(wire::FailureCode::kNotFound, "no such handle"));
  const bool lives = !found->second.state.exited;
  if (lives && found->second.args.argv[0] == "hang") die(found->second, args.signal);
  session.reply(request.id, wire::to_json(wire::SignalArgs::Ok{lives}));
}

void ScriptedProcesses::terminate(wire::ServedSession& session, const wire::Request& request) {
  const auto args = read<wire::TerminateArgs>(request);
  heard_.emplace_back("terminate");
  const auto found = processes_.find(args.handle);
  if (found == processes_.end())
    return session.fail(request.id, wire::failure(wire::FailureCode::kNotFound, "no such handle"));
  if (!found->second.state.exited) die(found->second, "SIGTERM");
  if (found->second.args.argv[0] == "fleeting") processes_.erase(found);
  session.reply(request.id, wire::to_json(wire::TerminateArgs::Ok{}));
}

void ScriptedProcesses::list(wire::ServedSession& session, const wire::Request& request) {
  const auto args = read<wire::ListProcessesArgs>(request);
  wire::ListProcessesArgs::Ok ok;
  for (const auto& [handle, process] : processes_) {
    if (args.after && handle <= *args.after) continue;
    ok.more = !ok.processes.empty();  // Pages of one.
    if (ok.more) break;
    ok.processes.push_back({.handle = handle, .argv = process.args.argv, .state = process.state});
  }
  session.reply(request.id, wire::to_json(ok));
}

void ScriptedProcesses::exit(Process& process, std::int64_t code) {
  process.state.exited = process.state.empty = true;
  process.state.exit_code = code;
}

void ScriptedProcesses::die(Process& process, const std::string& signal) {
  process.state.exited = process.state.empty = true;
  process.state.signal = signal;
}

void ScriptedProcesses::work(wire::SessionHost& host) {
  for (auto& [handle, process] : processes_)
    if (wire::ServedSession* session = host.find(process.session)) play(*session, process);
  std::erase_if(waiting_, [&](const Waiting& each) {
    wire::ServedSession* session = host.find(each.session);
    if (!session) return true;
    const auto found = processes_.find(each.handle);
    if (found == processes_.end()) {
      session->fail(each.id, wire::failure(wire::FailureCode::kNotFound, "no such handle"));
      return true;
    }
    if (!found->second.state.exited) return false;
    session->reply(each.id, wire::to_json(wire::WaitArgs::Ok{true, found->second.state}));
    return true;
  });
}

void ScriptedProcesses::play(wire::ServedSession& session, Process& process) {
  const std::uint32_t out = stream_of(process.args.out), err = stream_of(process.args.err);
  const std::string& name = process.args.argv[0];
  if (name == "say" && !process.state.exited) {
    const auto count = std::min(static_cast<std::size_t>(process.left), session.room(out));
    session.append(out, std::string(count, 'x'));
    process.left -= static_cast<std::int64_t>(count);
    if (process.left == 0) {
      session.append(err, "said");
      exit(process, 0);
    }
  }
  if (name == "cat" && !process.state.exited) {
    const auto* in = std::get_if<wire::Pipe>(&process.args.in);
    if (!in) exit(process, 0);
    while (const std::size_t room = in ? session.room(out) : 0) {
      const auto piece = session.take(in->stream, room);
      if (!piece) break;
      session.append(out, piece->bytes);
      if (piece->end) exit(process, 0);
    }
  }
  if (!process.state.exited || std::exchange(process.outputs_ended, true)) return;
  for (const std::uint32_t stream : {out, err})
    if (stream != 0) session.end(stream);
}

}  // namespace cli
