#include "libs/envd/client.h"

#include <algorithm>

#include "libs/base/crypto.h"
#include "libs/base/strings.h"
#include "libs/envd/connect.h"

namespace envd {
namespace {

using base::Done;
using base::error;
using base::ErrorCode;
using base::Json;
using base::Milliseconds;
using base::Result;

// envd pings this often; it must be positive, for a bad value ends old daemons.
constexpr int kPingSeconds = 30;
constexpr Milliseconds kGrace{15'000};               // Between a process's own limit and ours.
constexpr std::size_t kInputPieceBytes = 32u << 10;  // Less than a pipe holds.
constexpr std::size_t kRefusalBytesMax = 64u << 10;

// Old daemons have no default user.
std::string user_or_default(const std::string& user, const ClientOptions& options) {
  if (!user.empty() || version_at_least(options.envd_version, "0.4.0")) return user;
  return "user";
}

net::Request request_to(const Route& route, const char* method, const std::string& path) {
  return {.method = method, .url = route.url + path, .headers = route.headers};
}

net::Request call_to(const Route& route, const ClientOptions& options, const char* rpc,
                     const std::string& user) {
  net::Request request = request_to(route, "POST", std::string("/") + rpc);
  request.headers.add("Connect-Protocol-Version", "1");
  request.headers.add("Accept", "application/json");
  if (const std::string name = user_or_default(user, options); !name.empty())
    request.headers.add("Authorization", "Basic " + base::to_base64(name + ":"));
  return request;
}

std::string files_path(const std::string& path, const std::string& user,
                       const ClientOptions& options) {
  std::string query = "/files?path=" + base::percent_encode(path);
  if (const std::string name = user_or_default(user, options); !name.empty())
    query += "&username=" + base::percent_encode(name);
  return query;
}

// A number, or a number as text, which is how proto3 writes 64 bits.
std::int64_t number_at(const Json& object, const char* key) {
  if (const auto number = base::integer_at(object, key)) return *number;
  return base::parse_integer(base::text_at(object, key).value_or("")).value_or(0);
}

Result<Entry> read_entry(const Json& reply) {
  const Json* entry = base::object_at(reply, "entry");
  const auto path = entry ? base::text_at(*entry, "path") : std::nullopt;
  if (!path) return error(ErrorCode::kUnavailable, "entry.path is missing");
  const std::string type = base::text_at(*entry, "type").value_or("");
  return Entry{.path = *path,
               .is_folder = type == "FILE_TYPE_DIRECTORY" || number_at(*entry, "type") == 2,
               .is_symlink = base::text_at(*entry, "symlinkTarget").has_value() ||
                             type == "FILE_TYPE_SYMLINK",
               .size = static_cast<std::uint64_t>(number_at(*entry, "size")),
               .mode = static_cast<std::uint32_t>(number_at(*entry, "mode")) & 07777,
               .owner = base::text_at(*entry, "owner").value_or("")};
}

// A body that is read from where it is, so that a large file is not copied for each sandbox. What
// `content` views outlives the request.
class Body {
 public:
  Body(std::string before, std::string_view content, std::string after)
      : before_(std::move(before)), content_(content), after_(std::move(after)) {}

  std::size_t size() const { return before_.size() + content_.size() + after_.size(); }
  std::size_t read(char* buffer, std::size_t room) {
    std::size_t filled = 0, begin = 0;
    for (const std::string_view part :
         {std::string_view(before_), content_, std::string_view(after_)}) {
      const std::size_t skipped = std::min(part.size(), at_ - std::min(at_, begin));
      const std::size_t taken = part.substr(skipped).copy(buffer + filled, room - filled);
      filled += taken;
      at_ += taken;
      begin += part.size();
    }
    return filled;
  }

 private:
  std::string before_;
  std::string_view content_;
  std::string after_;
  std::size_t at_ = 0;
};

void put_body(net::Request& request, Body body) {
  request.source_bytes = body.size();
  request.source = [body = std::move(body)](char* buffer, std::size_t room) mutable {
    return Result<std::size_t>(body.read(buffer, room));
  };
}

// One file as multipart/form-data, the form that every envd takes.
void put_multipart(net::Request& request, const std::string& path, std::string_view content) {
  const std::string boundary = "sandfleet-" + base::random_hex(16);
  std::string name;  // Informative only: the `path` query decides.
  for (char c : path)
    name += c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ? '_' : c;
  request.headers.add("Content-Type", "multipart/form-data; boundary=" + boundary);
  put_body(request,
           {"--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" +
                name + "\"\r\nContent-Type: application/octet-stream\r\n\r\n",
            content, "\r\n--" + boundary + "--\r\n"});
}

Json start_message(const Command& command, bool takes_input) {
  Json process = {{"cmd", command.argv.front()},
                  {"args", std::vector(command.argv.begin() + 1, command.argv.end())},
                  {"envs", command.env}};
  if (command.cwd) process["cwd"] = *command.cwd;
  return {{"process", std::move(process)}, {"stdin", takes_input}};
}

// No answer. One that could not even be sent, or was the first on its way, may have a wrong way.
base::Error unanswered(std::string_view what, const net::Failure& failure, Side side,
                       const ClientOptions& options) {
  base::Error error = net::error_of(what, failure);
  const bool lost = (!failure.sent || side == Side::kHealth) &&
                    failure.code != ErrorCode::kCancelled && !options.advice.empty();
  if (lost) error.message += "; " + options.advice;
  return error;
}

// Why there is no success, if there is none.
std::optional<base::Error> refusal_of(std::string_view what, const net::Reply& reply, Side side,
                                      const ClientOptions& options) {
  if (!reply) return unanswered(what, reply.error(), side, options);
  if (reply->status == 200) return std::nullopt;
  return error_of(what, *reply, side, options.advice);
}

// What a stream's time is counted from.
enum class Counted { kFromItsBegin, kFromItsLastEvent };

// A Start stream as it comes in: its events go to `on_event`, which says whether to go on. One that
// is still coming in after `limit` is broken off, so that pings and crumbs do not draw it out.
class ProcessStream {
 public:
  using OnEvent = std::function<Result<bool>(const ProcessEvent&)>;

  ProcessStream(std::string what, const base::Clock& clock, Milliseconds limit, Counted counted,
                const ClientOptions& options, OnEvent on_event)
      : what_(std::move(what)),
        clock_(clock),
        limit_(limit),
        counted_(counted),
        deadline_(clock.now() + limit),
        options_(options),
        on_event_(std::move(on_event)) {}

  net::Sink sink() {
    return {[this](const net::Response& head) {
              head_ = head;
              return true;
            },
            [this](std::string_view bytes) {
              if (clock_.now() > deadline_)
                return fail(error(ErrorCode::kUnavailable, what_, ": envd did not end it in time"));
              return head_.status == 200 ? take(bytes) : keep(bytes);
            }};
  }

  // What ended the stream, if not `on_event`'s own wish or a good end.
  std::optional<base::Error> failure(const net::Reply& reply) const {
    if (failure_) return failure_;
    if (satisfied_ || ended_) return std::nullopt;
    if (!reply) return unanswered(what_, reply.error(), Side::kServices, options_);
    if (head_.status != 200) return error_of(what_, head_, Side::kServices, options_.advice);
    return error(ErrorCode::kUnavailable, what_, ": the stream broke off");
  }

 private:
  static bool is_ping(const ProcessEvent& event) {
    return !event.pid && !event.end && event.output.empty() && event.error_output.empty();
  }

  bool keep(std::string_view bytes) {
    head_.body.append(bytes.substr(0, kRefusalBytesMax - head_.body.size()));
    return head_.body.size() < kRefusalBytesMax;
  }

  bool fail(base::Error why) {
    failure_ = std::move(why);
    return false;
  }

  bool take(std::string_view bytes) {
    if (!head_.headers.find("Content-Type").value_or("").starts_with("application/connect+"))
      return fail(error_of_stranger(what_, head_.status, "", options_.advice));
    auto envelopes = decoder_.add(bytes);
    if (!envelopes)
      return fail(error(ErrorCode::kUnavailable, what_, ": ", envelopes.error().message));
    for (const Envelope& envelope : *envelopes) {
      if (envelope.is_end) {
        ended_ = true;
        failure_ = error_in_end(what_, envelope.payload);
        return false;
      }
      const auto event = read_process_event(envelope.payload);
      if (!event) return fail(error(ErrorCode::kUnavailable, what_, ": ", event.error().message));
      const auto go_on = on_event_(*event);
      if (!go_on) return fail(go_on.error());
      satisfied_ = !*go_on;
      if (satisfied_) return false;
      if (counted_ == Counted::kFromItsLastEvent && !is_ping(*event))
        deadline_ = clock_.now() + limit_;
    }
    return true;
  }

  const std::string what_;
  const base::Clock& clock_;
  const Milliseconds limit_;
  const Counted counted_;
  base::Moment deadline_;
  const ClientOptions& options_;
  OnEvent on_event_;
  EnvelopeDecoder decoder_;
  net::Response head_;
  std::optional<base::Error> failure_;
  bool satisfied_ = false, ended_ = false;
};

void collect(std::string& kept, std::string_view more, bool& cut) {
  const std::size_t room = kOutputBytesMax - kept.size();
  cut = cut || more.size() > room;
  kept.append(more.substr(0, room));
}

// True when it was the last event.
bool collect(Finished& finished, const ProcessEvent& event) {
  collect(finished.output, event.output, finished.cut);
  collect(finished.error_output, event.error_output, finished.cut);
  if (event.end) finished.exit_code = event.end->exit_code;
  return event.end.has_value();
}

Result<Done> check_command(const Command& command) {
  if (command.argv.empty() || command.argv.front().empty())
    return error(ErrorCode::kInvalid, "a command needs a program");
  return Done{};
}

// One unary call: its message as JSON, or why there is none.
Result<Json> unary(net::Transport& transport, const Route& route, const ClientOptions& options,
                   const char* rpc, const std::string& user, const std::string& what,
                   const Json& message, std::stop_token stop) {
  net::Request request = call_to(route, options, rpc, user);
  request.headers.add("Content-Type", "application/json");
  request.body = base::to_text(message);
  const net::Reply reply = transport.send(request, options.timeout, stop);
  if (auto refusal = refusal_of(what, reply, Side::kServices, options)) return *refusal;
  auto answer = base::parse_json(reply->body);
  if (!answer || !answer->is_object())
    return error(ErrorCode::kUnavailable, what, ": the answer is not a JSON object");
  return answer;
}

}  // namespace

Client::Client(net::Transport& transport, const base::Clock& clock, Route route,
               ClientOptions options)
    : transport_(transport),
      clock_(clock),
      route_(std::move(route)),
      options_(std::move(options)) {}

Result<Done> Client::health(std::stop_token stop) {
  const net::Reply reply =
      transport_.send(request_to(route_, "GET", "/health"), options_.timeout, stop);
  if (reply && reply->status == 204) return Done{};
  if (auto refusal = refusal_of("health of envd", reply, Side::kHealth, options_)) return *refusal;
  return Done{};
}

// --- Files.

Result<std::optional<Entry>> Client::stat(const std::string& path, const std::string& user,
                                          std::stop_token stop) {
  const std::string what = "stat " + path;
  auto reply = unary(transport_, route_, options_, "filesystem.Filesystem/Stat", user, what,
                     {{"path", path}}, stop);
  if (!reply && reply.error().code == ErrorCode::kNotFound) return std::optional<Entry>();
  if (!reply) return reply.error();
  auto entry = read_entry(*reply);
  if (!entry) return error(ErrorCode::kUnavailable, what, ": ", entry.error().message);
  return std::optional(*std::move(entry));
}

Result<Done> Client::upload(const std::string& path, std::string_view content,
                            const std::string& user, std::stop_token stop) {
  const std::string what = "upload " + path;
  net::Request request = request_to(route_, "POST", files_path(path, user, options_));
  if (version_at_least(options_.envd_version, "0.5.7")) {
    request.headers.add("Content-Type", "application/octet-stream");
    put_body(request, {"", content, ""});
  } else {
    put_multipart(request, path, content);
  }
  const net::Reply reply = transport_.send(request, options_.transfer_timeout, stop);
  if (auto refusal = refusal_of(what, reply, Side::kFiles, options_)) return *refusal;
  const auto written = base::parse_json(reply->body);
  if (!written || !written->is_array() || written->empty())
    return error(ErrorCode::kUnavailable, what, ": envd names no file that it wrote");
  return Done{};
}

Result<std::string> Client::download(const std::string& path, const std::string& user,
                                     std::stop_token stop) {
  const std::string what = "download " + path;
  const net::Reply reply = transport_.send(
      request_to(route_, "GET", files_path(path, user, options_)), options_.transfer_timeout, stop);
  if (auto refusal = refusal_of(what, reply, Side::kFiles, options_)) return *refusal;
  return reply->body;
}

// --- Processes.

namespace {

net::Request start_request(const Route& route, const ClientOptions& options, const Command& command,
                           bool takes_input) {
  net::Request request = call_to(route, options, "process.Process/Start", command.user);
  request.headers.add("Content-Type", "application/connect+json");
  request.headers.add("Keepalive-Ping-Interval", std::to_string(kPingSeconds));
  request.body = encode_envelope(base::to_text(start_message(command, takes_input)));
  return request;
}

}  // namespace

Result<Finished> Client::run(const Command& command, Milliseconds timeout, std::stop_token stop) {
  CHECK_OK(check_command(command));
  const std::string what = "run " + command.argv.front();
  if (timeout < Milliseconds(1)) return error(ErrorCode::kInvalid, what, ": no time to run in");
  net::Request request = start_request(route_, options_, command, false);
  request.headers.add("Connect-Timeout-Ms", std::to_string(timeout.count()));

  const Milliseconds limit = timeout + kGrace;
  Finished finished;
  bool has_ended = false;
  ProcessStream stream(what, clock_, limit, Counted::kFromItsBegin, options_,
                       [&](const ProcessEvent& event) -> Result<bool> {
                         has_ended = collect(finished, event);
                         return !has_ended;
                       });
  const net::Reply reply = transport_.stream(request, stream.sink(), limit, stop);
  if (auto failure = stream.failure(reply)) return *failure;
  if (!has_ended) return error(ErrorCode::kUnavailable, what, ": the stream ended before it did");
  return finished;
}

namespace {

// One that was started, and what it takes to speak to it.
class Listened final : public Started {
 public:
  Listened(net::Transport& transport, const Route& route, const ClientOptions& options,
           const Command& command, std::string what, std::stop_token stop)
      : transport_(transport),
        route_(route),
        options_(options),
        command_(command),
        what_(std::move(what)),
        stop_(std::move(stop)) {}

  std::uint32_t pid() const override { return pid_; }
  const std::string& output() const override { return heard_.output; }

  // In pieces that a pipe can hold.
  Result<Done> write(std::string_view input) override {
    if (input.size() > kInputBytesMax)
      return error(ErrorCode::kInvalid, what_, ": more than ", std::to_string(kInputBytesMax),
                   " bytes of input");
    for (std::size_t at = 0; at < input.size(); at += kInputPieceBytes) {
      const std::string piece = base::to_base64(input.substr(at, kInputPieceBytes));
      CHECK_OK(unary(transport_, route_, options_, "process.Process/SendInput", command_.user,
                     what_, {{"process", {{"pid", pid_}}}, {"input", {{"stdin", piece}}}}, stop_));
    }
    return Done{};
  }

  // Asks the listener when the event brings something that one waits for: whether to go on.
  Result<bool> hear(const ProcessEvent& event, const Listener& listener) {
    const bool begins = pid_ == 0 && event.pid.value_or(0) != 0;
    if (begins) pid_ = *event.pid;
    has_ended_ = collect(heard_, event);
    if (begins || (pid_ != 0 && !event.output.empty())) {
      const auto next = listener(*this);
      if (!next) end();
      if (!next) return next.error();
      if (*next == Next::kLeave) {
        was_left_ = true;
        return false;
      }
    }
    return !has_ended_;
  }

  // How it ended, or nothing when it was left running.
  Result<std::optional<Finished>> outcome() const {
    if (pid_ == 0) return error(ErrorCode::kUnavailable, what_, ": envd told no pid");
    if (was_left_) return std::optional<Finished>();
    if (has_ended_) return std::optional(heard_);
    return error(ErrorCode::kUnavailable, what_, ": the stream ended before it did");
  }

 private:
  // What nobody knows how to go on with must not stay behind half alive. Nothing more can be done
  // should this fail, too.
  void end() {
    (void)unary(transport_, route_, options_, "process.Process/SendSignal", command_.user,
                "end process", {{"process", {{"pid", pid_}}}, {"signal", "SIGNAL_SIGKILL"}}, {});
  }

  net::Transport& transport_;
  const Route& route_;
  const ClientOptions& options_;
  const Command& command_;
  const std::string what_;
  const std::stop_token stop_;
  std::uint32_t pid_ = 0;
  Finished heard_;
  bool has_ended_ = false, was_left_ = false;
};

}  // namespace

Result<std::optional<Finished>> Client::start(const Command& command, Milliseconds silence,
                                              const Listener& listener, std::stop_token stop) {
  CHECK_OK(check_command(command));
  const std::string what = "start " + command.argv.front();
  Listened process(transport_, route_, options_, command, what, stop);
  ProcessStream stream(what, clock_, silence, Counted::kFromItsLastEvent, options_,
                       [&](const ProcessEvent& event) { return process.hear(event, listener); });
  const net::Request request = start_request(route_, options_, command, true);
  const net::Reply reply = transport_.stream(request, stream.sink(), silence, stop);
  if (auto failure = stream.failure(reply)) return *failure;
  return process.outcome();
}

}  // namespace envd
