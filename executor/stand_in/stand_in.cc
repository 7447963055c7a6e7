#include "executor/stand_in/stand_in.h"

#include "executor/envd/connect.h"
#include "executor/envd/proto_json.h"
#include "executor/envd/settings.h"
#include "executor/init/supervisor.h"
#include "libs/base/crypto.h"
#include "libs/wire/token.h"

namespace executor {
namespace {

constexpr std::size_t kBodyBytesMax = 1u << 20;
constexpr std::size_t kLineBytesMax = 64u << 10;
constexpr base::Seconds kSecretsWithin{30};
constexpr int kNotFound = 127;

constexpr std::string_view kStart = "/process.Process/Start";
constexpr std::string_view kSendInput = "/process.Process/SendInput";
constexpr std::string_view kSendSignal = "/process.Process/SendSignal";

struct Asked {
  std::string program;
  std::vector<std::string> arguments;
};

RpcResult<Asked> read_start(const base::Json& message) {
  TRY(const auto process, Message(message).message("process"));
  if (!process) return RpcError(RpcCode::kInvalidArgument, "field 'process' is missing");
  Asked asked;
  TRY(const auto program, Message(*process).text("cmd"));
  asked.program = program.value_or("");
  TRY(asked.arguments, Message(*process).texts("args"));
  return asked;
}

bool starts_an_executor(const Asked& asked) {
  return asked.program.ends_with("/sandfleet-executor") && !asked.arguments.empty() &&
         asked.arguments.front() == "run";
}
// Its script, its name, and the four words by which root lays out an executor's place.
bool lays_out(const Asked& asked) {
  return asked.program == "/bin/sh" && asked.arguments.size() == 7;
}

base::Json event(base::Json what) { return {{"event", std::move(what)}}; }
base::Json begun(std::uint32_t pid) { return event({{"start", {{"pid", pid}}}}); }
base::Json said(const char* channel, std::string_view line) {
  return event({{"data", {{channel, base::to_base64(std::string(line) + "\n")}}}});
}
base::Json ended(int code) {
  return event({{"end",
                 {{"status", "exit status " + std::to_string(code)},
                  {"exitCode", code},
                  {"exited", true}}}});
}

aio::Task<> reply_with(std::shared_ptr<aio::HttpExchange> exchange, int status, base::Json body) {
  aio::HttpReply reply{status, {{"Content-Type", "application/json"}}, base::to_text(body)};
  static_cast<void>(co_await exchange->reply(std::move(reply)));
}

aio::Task<> reply_nothing(std::shared_ptr<aio::HttpExchange> exchange) {
  aio::HttpReply reply{204, {{"X-Envd-Version", std::string(kEnvdVersion)}}, ""};
  static_cast<void>(co_await exchange->reply(std::move(reply)));
}

// The one message of a call whose reply is a stream, read to the end of the body.
aio::Task<RpcResult<base::Json>> read_message(std::shared_ptr<aio::HttpExchange> exchange) {
  RpcMessages messages(std::move(exchange));
  CO_TRY(auto message, co_await messages.next());
  if (!message) co_return RpcError(RpcCode::kInvalidArgument, "the request holds no message");
  CO_TRY(const auto more, co_await messages.next());
  if (more) co_return RpcError(RpcCode::kInvalidArgument, "there is more than one message");
  co_return *std::move(message);
}

struct Given {
  std::uint32_t pid = 0;
  std::string bytes;
};
RpcResult<Given> read_input(std::string_view body) {
  TRY(const base::Json message, parse_message(body));
  TRY(const auto process, Message(message).message("process"));
  TRY(const auto input, Message(message).message("input"));
  if (!process || !input)
    return RpcError(RpcCode::kInvalidArgument, "fields 'process' and 'input' are needed");
  TRY(const auto pid, Message(*process).number("pid"));
  TRY(auto bytes, Message(*input).bytes("stdin"));
  return Given{pid.value_or(0), std::move(bytes).value_or("")};
}

// Forgets one key of a map when it goes out of scope, however its coroutine ends.
template <typename Map>
class Kept {
 public:
  Kept(std::shared_ptr<Map> map, typename Map::key_type key)
      : map_(std::move(map)), key_(std::move(key)) {}
  ~Kept() { map_->erase(key_); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;

 private:
  const std::shared_ptr<Map> map_;
  const typename Map::key_type key_;
};

}  // namespace

aio::Task<> StandIn::serve_envd(Exchange exchange) {
  const std::string path = exchange->head().path();
  if (path == "/health" || path == "/init") {
    co_await reply_nothing(exchange);
  } else if (path == kStart) {
    co_await start(exchange);
  } else if (path == kSendInput) {
    co_await send_input(exchange);
  } else if (path == kSendSignal) {
    co_await reply_with(exchange, 200, base::Json::object());
  } else {
    const RpcError error(RpcCode::kUnimplemented, "this stands in for a sandbox; nothing runs");
    co_await reply_with(exchange, http_status(error.rpc_code), to_json(error));
  }
}

aio::Task<> StandIn::start(Exchange exchange) {
  auto message = co_await read_message(exchange);
  aio::HttpFields fields = {{"Content-Type", "application/connect+json"}};
  if (!co_await exchange->begin(200, std::move(fields))) co_return;
  std::optional<RpcError> error;
  if (!message) error = message.error();
  Then then = Then::kEnds;
  if (message) {
    const int first = co_await aio::race(play(exchange, *std::move(message), then),
                                         exchange->wait_for_disconnect());
    if (first == 1) co_return;
    // An executor runs until its sandbox ends; who started it need not listen so long.
    if (then == Then::kGoesOn) co_return co_await exchange->wait_for_disconnect();
  }
  if (co_await exchange->write(end_envelope(error))) static_cast<void>(co_await exchange->finish());
}

aio::Task<> StandIn::play(Exchange exchange, base::Json message, Then& then) {
  RpcReplies replies(exchange);
  const auto asked = read_start(message);
  const std::uint32_t pid = next_pid_++;
  if (!co_await replies.send(begun(pid))) co_return;
  if (asked && starts_an_executor(*asked)) co_return co_await play_executor(replies, pid, then);
  const bool is_shell = asked && asked->program == "/bin/sh";
  base::Json words = said("stderr", "this stands in for a sandbox; nothing runs");
  if (is_shell) words = said("stdout", lays_out(*asked) ? "right" : "");
  if (!co_await replies.send(std::move(words))) co_return;
  static_cast<void>(co_await replies.send(ended(is_shell ? 0 : kNotFound)));
}

aio::Task<std::string> StandIn::line_of(std::shared_ptr<Input> input) {
  for (;;) {
    const std::size_t end = input->bytes.find('\n');
    if (end != std::string::npos) co_return input->bytes.substr(0, end);
    co_await input->came.wait();
  }
}

aio::Task<> StandIn::play_executor(RpcReplies& replies, std::uint32_t pid, Then& then) {
  const auto input = std::make_shared<Input>(executor_);
  (*waiting_)[pid] = input;
  const Kept kept(waiting_, pid);
  if (!co_await replies.send(said("stdout", wire::kWaitingLine))) co_return;
  const auto line = co_await aio::within(line_of(input), kSecretsWithin);
  const auto json = base::parse_json(line.value_or(""));
  const auto secrets = json ? wire::start_secrets_from_json(*json) : json.error();
  if (!secrets) {
    static_cast<void>(co_await replies.send(ended(kExitBadSecrets)));
    co_return;
  }
  if (!admit(*secrets)) {
    static_cast<void>(co_await replies.send(ended(wire::kExitTaken)));
    co_return;
  }
  if (co_await replies.send(said("stdout", wire::kServingLine))) then = Then::kGoesOn;
}

// False: an executor with these keys is at work, and stays what it is.
bool StandIn::admit(const wire::StartSecrets& secrets) {
  const World world{secrets.uid, secrets.epoch};
  const auto found = executors_.find(world);
  if (found != executors_.end() && found->second.admin_key == secrets.admin_key) return false;
  if (found == executors_.end()) order_.push_back(world);
  executors_[world] = {secrets.admin_key, std::make_shared<Admin>(secrets, std::nullopt, clock_)};
  if (order_.size() > executors_max_) {
    executors_.erase(order_.front());
    order_.pop_front();
  }
  return true;
}

aio::Task<> StandIn::send_input(Exchange exchange) {
  const auto body = co_await exchange->read_all(kBodyBytesMax);
  auto given = body ? read_input(*body) : RpcError(body.error());
  std::optional<RpcError> error;
  if (!given) {
    error = given.error();
  } else if (const auto found = waiting_->find(given->pid); found == waiting_->end()) {
    error = RpcError(RpcCode::kNotFound, "no process waits for input");
  } else if (found->second->bytes.size() + given->bytes.size() > kLineBytesMax) {
    error = RpcError(RpcCode::kResourceExhausted, "that is no line of start secrets");
  } else {
    found->second->bytes += given->bytes;
    found->second->came.notify_all();
  }
  co_await reply_with(exchange, error ? http_status(error->rpc_code) : 200,
                      error ? to_json(*error) : base::Json::object());
}

aio::Task<> StandIn::serve_executors(Exchange exchange) {
  const auto claims = wire::unproven_claims(bearer_token(exchange->head()).value_or(""));
  const auto found = claims ? executors_.find({claims->uid, claims->epoch}) : executors_.end();
  if (found == executors_.end()) {
    base::Json why = {{"error", "no executor of this token was started"}};
    co_await reply_with(exchange, 401, std::move(why));
    co_return;
  }
  const auto admin = found->second.admin;  // Stays while it answers.
  co_await admin->serve(exchange);
}

aio::Task<> StandIn::watch_the_clock() {
  for (;;) {
    co_await aio::sleep_for(kClockLookEvery);
    for (const auto& [world, started] : executors_) started.admin->look_at_the_clock();
  }
}

}  // namespace executor
