#include "cli/testing/scripted_processes.h"

#include <algorithm>

#include "libs/wire/frames/terminal_operations.h"

namespace cli {
namespace {

template <typename Args>
Args read(const wire::Request& request) {
  return *wire::from_json<Args>(request.args);
}

bool keeps(const wire::SpawnArgs& args) { return args.argv[0] == "notes" || args.argv[0] == "sh"; }

wire::Failure unknown() { return wire::failure(wire::FailureCode::kNotFound, "no such handle"); }

std::uint32_t stream_of(const wire::OutputMode& mode) {
  const auto* pipe = std::get_if<wire::Pipe>(&mode);
  return pipe ? pipe->stream : 0;
}

}  // namespace

void ScriptedProcesses::handle(wire::SessionHost& host, wire::HostEvent event) {
  if (std::holds_alternative<wire::SessionEnd>(event.what)) {
    std::erase_if(waiting_, [&](const Waiting& each) { return each.session == event.session; });
    std::erase_if(reading_, [&](const Reading& each) { return each.session == event.session; });
    ++sessions_ended_;
    return;
  }
  if (std::holds_alternative<wire::Cancelled>(std::get<wire::SessionEvent>(event.what)))
    heard_.emplace_back("cancel");
  const auto* asked = std::get_if<wire::Asked>(&std::get<wire::SessionEvent>(event.what));
  if (!asked) return;
  const wire::Request& request = asked->request;
  wire::ServedSession* found = host.find(event.session);
  if (!found) return;  // It has ended meanwhile.
  wire::ServedSession& session = *found;
  if (request.op == wire::SpawnArgs::kOp) {
    spawn_ = request;
    held_.push_back({event.session, request});
  } else if (request.op == wire::WaitArgs::kOp) {
    const auto args = read<wire::WaitArgs>(request);
    waiting_.push_back({event.session, request.id, args.handle, args.timeout_ms == 0});
  } else if (request.op == wire::SignalArgs::kOp) {
    signal(session, request);
  } else if (request.op == wire::TerminateArgs::kOp) {
    terminate(session, request);
  } else if (request.op == wire::AttachArgs::kOp) {
    attach(session, event.session, request);
  } else if (request.op == wire::ResizeTerminalArgs::kOp) {
    resize(session, request);
  } else if (request.op == wire::ForegroundArgs::kOp) {
    heard_.emplace_back("look");
    session.reply(request.id, wire::to_json(wire::ForegroundArgs::Ok{}));
  } else if (request.op == wire::ReadOutputArgs::kOp) {
    last_reading_ = read<wire::ReadOutputArgs>(request);
    ++readings_;
    reading_.push_back({event.session, request.id, *last_reading_});
  } else {
    list(session, request);
  }
}

void ScriptedProcesses::spawn(wire::ServedSession& session, const std::string& name,
                              const wire::Request& request) {
  Process process{.session = name, .args = read<wire::SpawnArgs>(request)};
  const auto& argv = process.args.argv;
  if (argv[0] == "missing") {
    auto failure = wire::failure(wire::FailureCode::kSpawnFailed, "missing: no such file");
    failure.detail = base::Json{{"errno", "ENOENT"}, {"step", "exec"}};
    return session.fail(request.id, failure);
  }
  if (argv[0] == "say") process.left = std::stoll(argv[1]);
  if (argv[0] == "code") exit(process, std::stoll(argv[1]));
  process.state.detached = process.args.detached;
  process.state.terminal = process.args.terminal;
  if (const auto* pipe = std::get_if<wire::Pipe>(&process.args.in)) process.in = pipe->stream;
  if (const auto* kept = std::get_if<wire::Collected>(&process.args.out))
    process.out = kept->stream.value_or(0);
  session.reply(request.id, wire::to_json(wire::SpawnArgs::Ok{process.state.pid}));
  processes_.emplace(process.args.handle, std::move(process));
}

void ScriptedProcesses::add(const std::string& handle, const std::string& command) {
  processes_[handle] = {.session = {}, .args = {.handle = handle, .argv = {command}}};
}

void ScriptedProcesses::add_detached(const std::string& handle, const std::string& command) {
  add(handle, command);
  wire::ProcessState& state = processes_[handle].state;
  state.detached = true;
  state.out = wire::OutputState{};
  if (command == "sh") state.terminal = wire::TerminalSize{};
}

void ScriptedProcesses::write(const std::string& handle, const std::string& text) {
  processes_[handle].said += text;
}

void ScriptedProcesses::keep_from(const std::string& handle, std::int64_t offset) {
  processes_[handle].kept_from = offset;
}

void ScriptedProcesses::finish(const std::string& handle, std::int64_t code) {
  exit(processes_[handle], code);
}

void ScriptedProcesses::attach(wire::ServedSession& session, const std::string& name,
                               const wire::Request& request) {
  const auto args = read<wire::AttachArgs>(request);
  const auto found = processes_.find(args.handle);
  if (found == processes_.end()) return session.fail(request.id, unknown());
  Process& process = found->second;
  process.session = name;
  process.in = args.in.value_or(0);
  process.out = args.out ? args.out->stream : 0;
  process.outputs_ended = false;
  process.sent = args.out ? std::max(args.out->from, process.kept_from) : 0;
  wire::AttachArgs::Ok ok{.state = process.state};
  ok.state.out = wire::OutputState{.bytes = static_cast<std::int64_t>(process.said.size())};
  if (args.out) ok.out = wire::OutputAt{process.sent, process.sent > args.out->from};
  session.reply(request.id, wire::to_json(ok));
}

void ScriptedProcesses::resize(wire::ServedSession& session, const wire::Request& request) {
  const auto args = read<wire::ResizeTerminalArgs>(request);
  heard_.push_back(std::to_string(args.size.rows) + "x" + std::to_string(args.size.columns));
  session.reply(request.id, wire::to_json(wire::ResizeTerminalArgs::Ok{}));
}

// Whether it is answered: not before there is something, unless it does not wait for that.
bool ScriptedProcesses::answer(wire::ServedSession& session, const Reading& reading) {
  const auto found = processes_.find(reading.args.handle);
  if (found == processes_.end()) {
    session.fail(reading.id, unknown());
    return true;
  }
  Process& process = found->second;
  write_on(process);
  const std::int64_t from = std::max(reading.args.from, process.kept_from);
  const std::string bytes = process.said.substr(static_cast<std::size_t>(from),
                                                static_cast<std::size_t>(reading.args.bytes_max));
  const std::int64_t next = from + static_cast<std::int64_t>(bytes.size());
  const bool ended = process.state.exited && next == static_cast<std::int64_t>(process.said.size());
  if (bytes.empty() && !ended && reading.args.wait_ms) return false;
  session.reply(reading.id, wire::to_json(wire::ReadOutputArgs::Ok{
                                from, next, from > reading.args.from, ended}));
  session.append(reading.id, bytes);
  session.end(reading.id);
  return true;
}

void ScriptedProcesses::write_on(Process& process) {
  if (process.rush.times == 0) return;
  --process.rush.times;
  for (int i = 0; i < process.rush.lines; ++i)
    process.said += std::to_string(++process.lines) + "\n";
  process.kept_from = std::max(
      process.kept_from, static_cast<std::int64_t>(process.said.size()) - process.rush.kept_bytes);
}

// What is typed is said, and what is said goes on from where it was.
void ScriptedProcesses::carry(wire::ServedSession& session, Process& process) {
  while (process.in != 0 && !process.state.exited) {
    const auto piece = session.take(process.in);
    if (!piece) break;
    process.said += piece->bytes;
    if (piece->bytes.find('x') != std::string::npos) exit(process, 9);
  }
  if (std::exchange(process.taken, false)) {
    session.stop(std::exchange(process.in, 0));
    session.end(std::exchange(process.out, 0),
                wire::failure(wire::FailureCode::kConflict, "a newer attach has it"));
  }
  if (process.out == 0 || process.outputs_ended) return;
  const auto left = process.said.size() - static_cast<std::size_t>(process.sent);
  const auto count = std::min(left, session.room(process.out));
  session.append(process.out, process.said.substr(static_cast<std::size_t>(process.sent), count));
  process.sent += static_cast<std::int64_t>(count);
  process.outputs_ended = process.state.exited && count == left;
  if (process.outputs_ended) session.end(process.out);
}

void ScriptedProcesses::signal(wire::ServedSession& session, const wire::Request& request) {
  const auto args = read<wire::SignalArgs>(request);
  heard_.push_back(args.signal);
  const auto found = processes_.find(args.handle);
  if (found == processes_.end()) return session.fail(request.id, unknown());
  const bool lives = !found->second.state.exited;
  if (lives && found->second.args.argv[0] == "hang") die(found->second, args.signal);
  session.reply(request.id, wire::to_json(wire::SignalArgs::Ok{lives}));
}

void ScriptedProcesses::terminate(wire::ServedSession& session, const wire::Request& request) {
  const auto args = read<wire::TerminateArgs>(request);
  heard_.emplace_back("terminate");
  const auto found = processes_.find(args.handle);
  if (found == processes_.end()) return session.fail(request.id, unknown());
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
  for (const Held& each : hold_spawns_ ? std::vector<Held>() : std::exchange(held_, {}))
    if (wire::ServedSession* session = host.find(each.session))
      spawn(*session, each.session, each.request);
  for (auto& [handle, process] : processes_) {
    wire::ServedSession* session = host.find(process.session);
    if (session && !keeps(process.args)) play(*session, process);
    if (session && keeps(process.args) && !silent_) carry(*session, process);
  }
  std::erase_if(reading_, [&](const Reading& each) {
    wire::ServedSession* session = host.find(each.session);
    return !session || answer(*session, each);
  });
  std::erase_if(waiting_, [&](const Waiting& each) {
    wire::ServedSession* session = host.find(each.session);
    if (!session) return true;
    const auto found = processes_.find(each.handle);
    if (found == processes_.end()) {
      session->fail(each.id, unknown());
      return true;
    }
    const Process& process = found->second;
    if (!process.state.exited && !each.looks) return false;
    wire::WaitArgs::Ok ok{process.state.exited, process.state};
    if (ok.state.out) {
      ok.state.out->bytes = static_cast<std::int64_t>(process.said.size());
      ok.state.out->lossy = process.kept_from > 0;
    }
    session->reply(each.id, wire::to_json(ok));
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
