#include "libs/base/crypto.h"
#include "libs/base/json.h"
#include "libs/envd/call.h"

// envd's processes.
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

Json start_message(const Command& command, bool takes_input) {
  Json process = {{"cmd", command.argv.front()},
                  {"args", std::vector(command.argv.begin() + 1, command.argv.end())},
                  {"envs", command.env}};
  if (command.cwd) process["cwd"] = *command.cwd;
  return {{"process", std::move(process)}, {"stdin", takes_input}};
}

net::Request start_request(const Caller& caller, const Command& command, bool takes_input) {
  net::Request request = call_to(caller, "process.Process/Start", command.user);
  request.headers.add("Content-Type", "application/connect+json");
  request.headers.add("Keepalive-Ping-Interval", std::to_string(kPingSeconds));
  request.body = encode_envelope(base::to_text(start_message(command, takes_input)));
  return request;
}

Result<Done> check_command(const Command& command) {
  if (command.argv.empty() || command.argv.front().empty())
    return error(ErrorCode::kInvalid, "a command needs a program");
  return Done{};
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

// One that was started, and what it takes to speak to it.
class Listened final : public Started {
 public:
  Listened(const Caller& caller, const Command& command, std::string what, std::stop_token stop)
      : caller_(caller), command_(command), what_(std::move(what)), stop_(std::move(stop)) {}

  std::uint32_t pid() const override { return pid_; }
  const std::string& output() const override { return heard_.output; }

  // In pieces that a pipe can hold.
  Result<Done> write(std::string_view input) override {
    if (input.size() > kInputBytesMax)
      return error(ErrorCode::kInvalid, what_, ": more than ", std::to_string(kInputBytesMax),
                   " bytes of input");
    for (std::size_t at = 0; at < input.size(); at += kInputPieceBytes) {
      const std::string piece = base::to_base64(input.substr(at, kInputPieceBytes));
      CHECK_OK(unary(caller_, "process.Process/SendInput", command_.user, what_,
                     {{"process", {{"pid", pid_}}}, {"input", {{"stdin", piece}}}}, stop_));
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
    (void)unary(caller_, "process.Process/SendSignal", command_.user, "end process",
                {{"process", {{"pid", pid_}}}, {"signal", "SIGNAL_SIGKILL"}}, {});
  }

  const Caller caller_;
  const Command& command_;
  const std::string what_;
  const std::stop_token stop_;
  std::uint32_t pid_ = 0;
  Finished heard_;
  bool has_ended_ = false, was_left_ = false;
};

}  // namespace

Result<Finished> Client::run(const Command& command, Milliseconds timeout, std::stop_token stop) {
  CHECK_OK(check_command(command));
  const std::string what = "run " + command.argv.front();
  if (timeout < Milliseconds(1)) return error(ErrorCode::kInvalid, what, ": no time to run in");
  net::Request request = start_request({transport_, route_, options_}, command, false);
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

Result<std::optional<Finished>> Client::start(const Command& command, Milliseconds silence,
                                              const Listener& listener, std::stop_token stop) {
  CHECK_OK(check_command(command));
  const std::string what = "start " + command.argv.front();
  const Caller caller{transport_, route_, options_};
  Listened process(caller, command, what, stop);
  ProcessStream stream(what, clock_, silence, Counted::kFromItsLastEvent, options_,
                       [&](const ProcessEvent& event) { return process.hear(event, listener); });
  const net::Request request = start_request(caller, command, true);
  const net::Reply reply = transport_.stream(request, stream.sink(), silence, stop);
  if (auto failure = stream.failure(reply)) return *failure;
  return process.outcome();
}

}  // namespace envd
