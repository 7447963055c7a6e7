#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "executor/envd/proto_json.h"
#include "executor/envd/rpc.h"
#include "executor/files/path.h"
#include "executor/process/processes.h"
#include "libs/base/crypto.h"

namespace executor {
namespace {

constexpr const char* kUsualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

struct StartAsk {
  Command command;
  std::optional<TerminalSize> terminal;
  bool keep_stdin = true;
};

RpcResult<std::optional<TerminalSize>> read_terminal(const base::Json& message) {
  TRY(const auto pty, Message(message).message("pty"));
  if (!pty) return std::optional<TerminalSize>();
  TRY(const auto size, Message(*pty).message("size"));
  TerminalSize terminal;
  if (size) {
    TRY(const auto columns, Message(*size).number("cols"));
    TRY(const auto rows, Message(*size).number("rows"));
    const auto fit = [](std::optional<std::uint32_t> given, std::uint16_t usual) {
      return given && *given > 0 ? static_cast<std::uint16_t>(std::min(*given, 65535u)) : usual;
    };
    terminal = {fit(columns, terminal.columns), fit(rows, terminal.rows)};
  }
  return std::optional(terminal);
}

RpcResult<StartAsk> read_start(const base::Json& json) {
  const Message message(json);
  TRY(const auto process, message.message("process"));
  if (!process) return RpcError(RpcCode::kInvalidArgument, "field 'process' is missing");
  const Message config(*process);
  StartAsk ask;
  TRY(const auto program, config.text("cmd"));
  if (!program || program->empty())
    return RpcError(RpcCode::kInvalidArgument, "field 'process.cmd' is missing");
  ask.command.program = *program;
  TRY(ask.command.args, config.texts("args"));
  TRY(ask.command.env, config.text_map("envs"));
  TRY(ask.command.cwd, config.text("cwd"));
  TRY(ask.command.tag, message.text("tag"));
  TRY(ask.terminal, read_terminal(json));
  TRY(const auto keep_stdin, message.boolean("stdin"));
  ask.keep_stdin = keep_stdin.value_or(true);
  return ask;
}

RpcResult<base::Done> refuse_zero_bytes(const Command& command) {
  const auto has_zero = [](const std::string& text) {
    return text.find('\0') != std::string::npos;
  };
  bool bad =
      has_zero(command.program) || std::any_of(command.args.begin(), command.args.end(), has_zero);
  for (const auto& [name, value] : command.env)
    bad |= has_zero(name) || has_zero(value) || name.empty() || name.find('=') != std::string::npos;
  if (bad)
    return RpcError(RpcCode::kInvalidArgument,
                    "a zero byte in the command, or a variable without a proper name");
  return base::Done{};
}

RpcResult<Launch> make_launch(const RpcCall& call, const StartAsk& ask) {
  const Daemon& daemon = *call.daemon;
  const char* path = std::getenv("PATH");
  const std::map<std::string, std::string> of_user = {{"PATH", path && *path ? path : kUsualPath},
                                                      {"HOME", call.user.home},
                                                      {"USER", call.user.name},
                                                      {"LOGNAME", call.user.name}};
  Launch launch;
  launch.argv.push_back(ask.command.program);
  launch.argv.insert(launch.argv.end(), ask.command.args.begin(), ask.command.args.end());
  launch.env = layered({&of_user, &daemon.settings.env, &ask.command.env});
  auto cwd = resolve_path(ask.command.cwd.value_or(""), call.user, daemon.settings.default_workdir);
  if (!cwd) return RpcError(cwd.error());
  launch.cwd = *std::move(cwd);
  launch.user = call.user;
  launch.switch_user = daemon.users.may_switch();
  launch.keep_stdin = ask.keep_stdin;
  launch.terminal = ask.terminal;
  launch.descriptors = daemon.command_descriptors;
  return launch;
}

RpcResult<Selector> read_selector(const base::Json& message) {
  TRY(const auto process, Message(message).message("process"));
  if (!process) return RpcError(RpcCode::kInvalidArgument, "field 'process' is missing");
  TRY(const auto pid, Message(*process).number("pid"));
  TRY(const auto tag, Message(*process).text("tag"));
  if (pid) return Selector(*pid);
  if (tag) return Selector(*tag);
  return RpcError(RpcCode::kInvalidArgument, "field 'process' must hold a pid or a tag");
}

RpcResult<std::shared_ptr<Process>> find_process(const Daemon& daemon, const base::Json& message) {
  TRY(const Selector selector, read_selector(message));
  auto process = daemon.processes.find(selector);
  if (process) return process;
  const auto* pid = std::get_if<std::uint32_t>(&selector);
  return RpcError(RpcCode::kNotFound,
                  pid ? "no process has pid " + std::to_string(*pid)
                      : "no process has tag " + std::get<std::string>(selector));
}

RpcResult<std::shared_ptr<Process>> find_running(const Daemon& daemon, const base::Json& message) {
  TRY(auto process, find_process(daemon, message));
  if (process->running()) return process;
  return RpcError(RpcCode::kNotFound,
                  "process " + std::to_string(process->pid()) + " has already ended");
}

base::Json start_event(pid_t pid) { return {{"event", {{"start", {{"pid", pid}}}}}}; }

base::Json event_json(const ProcessEvent& event) {
  if (const auto* output = std::get_if<Output>(&event)) {
    const char* channel = output->channel == Channel::kStdout   ? "stdout"
                          : output->channel == Channel::kStderr ? "stderr"
                                                                : "pty";
    return {{"event", {{"data", {{channel, base::to_base64(output->bytes)}}}}}};
  }
  const End& end = std::get<End>(event);
  base::Json json = {{"status", end.status}};
  if (end.exit_code != 0) json["exitCode"] = end.exit_code;
  if (end.exited) json["exited"] = true;
  if (end.error) json["error"] = *end.error;
  return {{"event", {{"end", std::move(json)}}}};
}

// Carries the events of one process to one caller, until its end, the deadline, or until the
// caller has left.
aio::Task<RpcResult<base::Done>> carry(RpcReplies& replies, pid_t pid,
                                       std::shared_ptr<Fanout::Subscriber> subscriber,
                                       RpcCall call) {
  const RpcError too_late(RpcCode::kDeadlineExceeded, "the deadline of the call has passed");
  if (auto sent = co_await replies.send(start_event(pid)); !sent) co_return sent.error();
  base::Moment quiet_since = base::SystemClock().now();
  for (;;) {
    const base::Moment ping_at = quiet_since + call.keepalive;
    const base::Moment wake_at = call.deadline ? std::min(ping_at, *call.deadline) : ping_at;
    std::optional<std::optional<ProcessEvent>> next;
    co_await aio::race(aio::keep_result(subscriber->next(), next), aio::sleep_until(wake_at));
    const base::Moment now = base::SystemClock().now();
    if (call.deadline && now >= *call.deadline) co_return too_late;
    if (!next && now < ping_at) continue;
    base::Json message = {{"event", {{"keepalive", base::Json::object()}}}};
    if (next) {
      if (!*next)
        co_return RpcError(RpcCode::kResourceExhausted,
                           "this reader fell too far behind the others and was cut off");
      message = event_json(**next);
    }
    if (auto sent = co_await replies.send(std::move(message)); !sent) co_return sent.error();
    if (next && std::holds_alternative<End>(**next)) co_return base::Done{};
    quiet_since = now;
  }
}

struct Input {
  std::string bytes;
  bool terminal = false;
};

RpcResult<std::optional<Input>> read_input(const base::Json& message) {
  TRY(const auto input, Message(message).message("input"));
  if (!input) return std::optional<Input>();
  TRY(auto typed, Message(*input).bytes("pty"));
  if (typed) return std::optional(Input{*std::move(typed), true});
  TRY(auto bytes, Message(*input).bytes("stdin"));
  if (!bytes) return std::optional<Input>();
  return std::optional(Input{*std::move(bytes), false});
}

aio::Task<RpcResult<base::Done>> give_input(std::shared_ptr<Process> process, Input input) {
  if (input.terminal != process->has_terminal())
    co_return RpcError(RpcCode::kInvalidArgument, process->has_terminal()
                                                      ? "it has a terminal; send pty input"
                                                      : "it has no terminal; send stdin input");
  auto written = co_await process->write_input(std::move(input.bytes));
  if (!written) co_return RpcError(RpcCode::kInternal, written.error().message);
  co_return base::Done{};
}

}  // namespace

aio::Task<RpcResult<base::Json>> rpc_list(RpcCall call) {
  base::Json reply = base::Json::object();
  for (const Started& one : call.daemon->processes.running()) {
    base::Json config = {{"cmd", one.command.program}};
    if (!one.command.args.empty()) config["args"] = one.command.args;
    if (!one.command.env.empty()) config["envs"] = one.command.env;
    if (one.command.cwd) config["cwd"] = *one.command.cwd;
    base::Json info = {{"config", std::move(config)}, {"pid", one.process->pid()}};
    if (one.command.tag) info["tag"] = *one.command.tag;
    reply["processes"].push_back(std::move(info));
  }
  co_return reply;
}

aio::Task<RpcResult<base::Done>> rpc_start(RpcCall call, RpcReplies& replies) {
  CO_TRY(StartAsk ask, read_start(call.message));
  CO_CHECK_OK(refuse_zero_bytes(ask.command));
  CO_TRY(Launch launch, make_launch(call, ask));
  auto begun =
      call.daemon->processes.start(std::move(ask.command), std::move(launch), call.timeout);
  if (!begun) co_return RpcError(begun.error());
  const pid_t pid = begun->process->pid();
  co_return co_await carry(replies, pid, begun->subscriber, std::move(call));
}

aio::Task<RpcResult<base::Done>> rpc_connect(RpcCall call, RpcReplies& replies) {
  CO_TRY(const auto process, find_process(*call.daemon, call.message));
  const auto subscriber = process->subscribe();
  co_return co_await carry(replies, process->pid(), subscriber, std::move(call));
}

aio::Task<RpcResult<base::Json>> rpc_update(RpcCall call) {
  CO_TRY(const auto process, find_running(*call.daemon, call.message));
  CO_TRY(const auto size, read_terminal(call.message));
  if (size) {
    const auto resized = process->resize(*size);
    if (!resized) co_return RpcError(resized.error());
  }
  co_return base::Json::object();
}

aio::Task<RpcResult<base::Json>> rpc_send_input(RpcCall call) {
  CO_TRY(const auto process, find_running(*call.daemon, call.message));
  CO_TRY(auto input, read_input(call.message));
  if (!input) co_return RpcError(RpcCode::kInvalidArgument, "field 'input' is missing");
  CO_CHECK_OK(co_await give_input(process, *std::move(input)));
  co_return base::Json::object();
}

aio::Task<RpcResult<base::Json>> rpc_stream_input(RpcCall call, RpcMessages& messages) {
  std::shared_ptr<Process> process;
  for (;;) {
    CO_TRY(const auto message, co_await messages.next());
    if (!message) co_return base::Json::object();
    CO_TRY(const auto start, Message(*message).message("start"));
    CO_TRY(const auto data, Message(*message).message("data"));
    if (start) {
      CO_TRY(process, find_running(*call.daemon, *start));
    } else if (data) {
      if (!process)
        co_return RpcError(RpcCode::kInvalidArgument, "the first message must be 'start'");
      CO_TRY(auto input, read_input(*data));
      if (input) CO_CHECK_OK(co_await give_input(process, *std::move(input)));
    }
  }
}

aio::Task<RpcResult<base::Json>> rpc_send_signal(RpcCall call) {
  CO_TRY(const auto process, find_process(*call.daemon, call.message));
  CO_TRY(const auto number,
         Message(call.message)
             .enumerator("signal", {{"SIGNAL_SIGTERM", SIGTERM}, {"SIGNAL_SIGKILL", SIGKILL}}));
  if (number != SIGTERM && number != SIGKILL)
    co_return RpcError(RpcCode::kUnimplemented, "only SIGNAL_SIGTERM and SIGNAL_SIGKILL are");
  // Of one that has ended, what it left behind can still be signalled.
  if (!process->signal(*number))
    co_return RpcError(RpcCode::kNotFound,
                       "process " + std::to_string(process->pid()) + " has already ended");
  co_return base::Json::object();
}

aio::Task<RpcResult<base::Json>> rpc_close_stdin(RpcCall call) {
  CO_TRY(const auto process, find_running(*call.daemon, call.message));
  if (process->has_terminal())
    co_return RpcError(RpcCode::kInvalidArgument, "it has a terminal; send 0x04 to end its input");
  process->close_input();
  co_return base::Json::object();
}

}  // namespace executor
