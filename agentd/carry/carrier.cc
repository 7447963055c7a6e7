#include "agentd/carry/carrier.h"

#include <algorithm>
#include <utility>

#include "agentd/carry/token_end.h"
#include "libs/base/crypto.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"

namespace agentd {
namespace {

using wire::CloseReason;
using wire::FrameType;
using namespace std::chrono_literals;

// Who is sent away again within this time has not got through.
constexpr base::Milliseconds kFleeting = 5s;
constexpr base::Milliseconds kFarAhead = std::chrono::hours(24);

wire::Close close_of(CloseReason reason, std::string_view message) {
  return {.reason = reason, .message = std::string(base::cut(message, 1024))};
}

// Of what a harness sends.
bool is_looked_into(const Carried& frame) {
  return frame.is(FrameType::kHello) || frame.is(FrameType::kProve) ||
         frame.is(FrameType::kRenew) || frame.is(FrameType::kResume) || frame.is(FrameType::kClose);
}

std::string_view word_for(const Ending& ending) {
  return std::visit(
      base::Overloaded{[](const NoWay&) -> std::string_view { return "no way"; },
                       [](const Unreachable&) -> std::string_view { return "unreachable"; },
                       [](const Impostor&) -> std::string_view { return "impostor"; },
                       [](const Broken&) -> std::string_view { return "broken"; },
                       [](const wire::Close& close) { return to_word(close.reason); }},
      ending);
}

std::string message_of(const Ending& ending) {
  return std::visit(base::Overloaded{[](const Impostor&) { return std::string(); },
                                     [](const auto& one) { return one.message; }},
                    ending);
}

std::string_view word_for(Refusal why) {
  for (const auto& [one, word] : kRefusalWords)
    if (one == why) return word;
  return "other";
}

base::Result<wire::Message> message_in(std::string_view bytes) {
  TRY(auto frame, wire::decode(bytes));
  if (!frame) return base::error(base::ErrorCode::kInvalid, "a frame of a later version");
  return wire::to_message(*std::move(frame));
}

}  // namespace

Carrier::Carrier(const CarrierParts& parts, std::shared_ptr<aio::Stream> harness, Caller caller)
    : parts_(parts),
      caller_(std::move(caller)),
      harness_(parts.executor, std::move(harness)),
      harness_pulse_(parts.clock.now()),
      alone_since_(parts.clock.now()),
      ask_at_(parts.clock.now() + kFarAhead),
      moved_(parts.executor) {
  parts_.roster.join(*this);
}

Carrier::~Carrier() {
  parts_.roster.remove(*this);
  parts_.counts.links(parts_.roster.links());
}

aio::Task<> Carrier::run() {
  const base::Moment began = now();
  co_await aio::race(harness_.speak(parts_.times.hang_up), serve());
  base::log::debug("harness link is over", {{"namespace", sandbox_.space},
                                            {"name", sandbox_.name},
                                            {"peer", caller_.name},
                                            {"ms", (now() - began).count()}});
}

void Carrier::leave(wire::Close close) {
  if (leaving_) return;
  leaving_ = now();
  const auto log = sandbox_.name.empty() ? base::log::debug : base::log::info;  // A stranger.
  log("harness link ends", {{"namespace", sandbox_.space},
                            {"name", sandbox_.name},
                            {"peer", caller_.name},
                            {"reason", to_word(close.reason)},
                            {"message", close.message}});
  parts_.counts.told(to_word(close.reason));
  harness_.outbox.finish(std::move(close));
  moved_.notify_all();
}

// Once it was told why, speak() waits for it to hang up, and ends all of this.
aio::Task<> Carrier::serve() {
  if (co_await greet())
    co_await aio::race(listen(), talk());
  else if (leaving_)
    co_await aio::sleep_for(parts_.times.last_word);
}

aio::Task<> Carrier::talk() { co_await aio::race(watch(), work()); }

// Whoever is to leave has nothing more to do with the executor, whatever is under way there: the
// session may be another's by now.
aio::Task<> Carrier::work() {
  co_await aio::race(until_leaving(), keep_up());
  if (executor_) executor_->reset();
  executor_.reset();
  co_await aio::sleep_for(kFarAhead);  // The harness reads why, and hangs up.
}

aio::Task<> Carrier::keep_up() { co_await aio::race(pursue(), keep_access()); }

aio::Task<> Carrier::until_leaving() {
  while (!leaving_) co_await moved_.wait();
}

// --- The harness.

aio::Task<bool> Carrier::greet() {
  const auto arrived = co_await aio::within(harness_.read(), parts_.times.hello);
  if (leaving_) co_return false;
  if (!arrived) {
    leave(close_of(CloseReason::kDenied, "it took too long to say hello"));
    co_return false;
  }
  if (*arrived && !**arrived) co_return false;  // It left.
  auto message = *arrived ? message_in((**arrived)->bytes) : (*arrived).error();
  auto refused = message ? judge(*std::move(message))
                         : close_of(CloseReason::kProtocol, message.error().message);
  if (refused) leave(*std::move(refused));
  co_return !leaving_;
}

// Whether it is let in as far as agentd knows; else why not.
std::optional<wire::Close> Carrier::judge(wire::Message message) {
  auto* hello = std::get_if<wire::Hello>(&message);
  if (!hello) return close_of(CloseReason::kProtocol, "it did not begin with hello");
  if (hello->protocol.min > wire::kProtocolVersion || hello->protocol.max < wire::kProtocolVersion)
    return close_of(CloseReason::kVersion,
                    "version " + std::to_string(wire::kProtocolVersion) + " is spoken here");
  if (hello->claims)
    return close_of(CloseReason::kDenied, "agentd takes a token that is shown, or none");
  if (!accepts(hello->token))
    return close_of(CloseReason::kDenied, "it did not show the token that this agentd asks for");
  const auto& sandbox = hello->sandbox ? hello->sandbox : parts_.usual;
  if (!sandbox)
    return close_of(CloseReason::kProtocol,
                    "hello names no sandbox, and this agentd has none of its own (--sandbox)");
  sandbox_ = *sandbox;
  if (!parts_.roster.enter(*this, sandbox_)) {
    wire::Close close = close_of(CloseReason::kBusy, "too many links are open");
    close.retry_after_ms = 5'000;
    return close;
  }
  parts_.counts.links(parts_.roster.links());
  token_ = std::exchange(hello->token, std::nullopt);
  hello_ = std::move(*hello);
  hello_.protocol = {};  // What agentd speaks.
  alone_since_ = now();
  base::log::info("harness link begins", {{"namespace", sandbox_.space},
                                          {"name", sandbox_.name},
                                          {"peer", caller_.name},
                                          {"client", base::on_one_line(hello_.client)},
                                          {"resumes", hello_.session.has_value()}});
  return std::nullopt;
}

aio::Task<> Carrier::listen() {
  for (;;) {
    auto frame = co_await harness_.read();
    if (!frame) {
      leave(close_of(CloseReason::kProtocol, frame.error().message));
      co_return co_await aio::sleep_for(parts_.times.last_word);  // It has no frames any more.
    }
    if (!*frame) co_return;  // It hung up.
    harness_pulse_.heard(now());
    if (leaving_) continue;
    if (!co_await hand_on(**std::move(frame))) co_return;
  }
}

// False: that was its last word.
aio::Task<bool> Carrier::hand_on(Carried frame) {
  if (frame.is(FrameType::kPing)) harness_.outbox.pong();
  if (frame.is(FrameType::kPing) || frame.is(FrameType::kPong)) co_return true;
  if (is_looked_into(frame)) {
    auto message = message_in(frame.bytes);
    if (!message) {
      leave(close_of(CloseReason::kProtocol, message.error().message));
      co_return true;
    }
    if (const auto* close = std::get_if<wire::Close>(&*message)) {
      if (close->reason == CloseReason::kEnd) co_await end_session();
      co_return false;
    }
    if (auto* renewal = std::get_if<wire::Renew>(&*message)) {
      take(std::move(*renewal));
      co_return true;
    }
    const auto* resume = std::get_if<wire::Resume>(&*message);
    if (!resume) {
      leave(close_of(CloseReason::kProtocol, "a handshake where a session is open"));
      co_return true;
    }
    resumed_ = executor_ && resume->link == link_;
  }
  if (frame.is(FrameType::kRequest) && !executor_ && !std::exchange(demanded_, true))
    moved_.notify_all();
  const auto executor = executor_;
  // What comes before it names the link was meant for one before.
  if (!executor || !resumed_) co_return true;
  parts_.counts.to_executor.count(frame.bytes.size());
  handing_on_ = true;
  co_await executor->outbox.put(std::move(frame.bytes));
  handing_on_ = false;
  harness_pulse_.heard(now());
  co_return true;
}

// One that is agentd's own affair goes no further.
bool Carrier::accepts(std::optional<std::string>& token) const {
  if (!caller_.token) return true;
  const auto shown = std::exchange(token, std::nullopt);
  return shown && base::equal_secrets(*shown, *caller_.token);
}

// As far as the executor is there to hear it: else the session's lease ends it.
aio::Task<> Carrier::end_session() {
  if (!executor_) co_return;
  executor_->outbox.finish(wire::Close{CloseReason::kEnd});
  co_await aio::race(until_parted(executor_), aio::sleep_for(parts_.times.last_word));
}

aio::Task<> Carrier::until_parted(std::shared_ptr<ExecutorLink> link) {
  while (executor_ == link) co_await moved_.wait();
}

void Carrier::take(wire::Renew renewal) {
  if (!renewal.token)
    return leave(close_of(CloseReason::kDenied, "agentd takes a token that is shown"));
  if (!accepts(renewal.token))
    return leave(close_of(CloseReason::kDenied, "it is not the token that this agentd asks for"));
  token_ = std::move(renewal.token);
  renewal_asked_ = true;
  moved_.notify_all();
}

// --- The executor.

aio::Task<> Carrier::pursue() {
  bool ask = true;
  for (;;) {
    const Ending ending = co_await attempt(ask);
    const auto* close = std::get_if<wire::Close>(&ending);
    quiesced_ |= close && close->reason == CloseReason::kQuiesce;
    Step step = next_step(ending, situation(ask));
    ++failures_;
    note(ending, step);
    ask = co_await follow(std::move(step));
  }
}

aio::Task<Ending> Carrier::attempt(bool ask) {
  if (ask || !way_) {
    Answer answer = co_await this->ask();
    if (auto* none = std::get_if<NoWay>(&answer)) co_return std::move(*none);
    adopt(std::get<Way>(std::move(answer)));
  }
  if (hello_.session) parts_.roster.take(*this, *hello_.session);
  auto opened = co_await ExecutorLink::open(parts_.executor, parts_.dialler, *way_, hello_, now());
  auto* failed = std::get_if<Ending>(&opened);
  parts_.counts.dialled(welcomed_, failed ? word_for(*failed) : "welcome");
  if (failed) co_return std::move(*failed);
  co_return co_await carry(std::get<0>(std::move(opened)));
}

aio::Task<Answer> Carrier::ask() {
  Answer answer = co_await parts_.ways.ask(sandbox_, token_);
  const auto* none = std::get_if<NoWay>(&answer);
  parts_.counts.asked(none ? word_for(none->why) : "Way");
  co_return answer;
}

// A quarter of the time is left to chance: not all ask at once who came at once. Where the clocks
// of both differ, it is not asked all the time.
void Carrier::adopt(Way way) {
  const base::Milliseconds holds = way.expires - parts_.clock.wall();
  const auto longest = std::clamp(holds - parts_.times.ask_before_end,
                                  parts_.times.ask_after_silence, parts_.times.ask_every);
  const double part = 1 - parts_.jitter() / 4;
  ask_at_ = now() + base::Milliseconds(
                        static_cast<std::int64_t>(part * static_cast<double>(longest.count())));
  way_ = std::move(way);
}

aio::Task<Ending> Carrier::carry(std::shared_ptr<ExecutorLink> link) {
  const base::Moment began = now();
  ending_.reset();
  resumed_ = quiesced_ = demanded_ = false;
  link_ = link->welcome().link;
  executor_ = link;
  moved_.notify_all();
  co_await welcome(*link);
  co_await aio::race(bring(link), link->speak(parts_.times.hang_up));
  link->reset();
  executor_.reset();
  alone_since_ = now();
  moved_.notify_all();
  Ending ending = std::move(ending_).value_or(Broken{"the connection was cut"});
  const bool sent_away = std::holds_alternative<wire::Close>(ending);
  if (now() - began >= kFleeting || (resumed_ && !sent_away)) failures_ = 0;
  co_return ending;
}

// The harness hears what the executor says, but for how long its own credential is good.
aio::Task<> Carrier::welcome(ExecutorLink& link) {
  hello_.session = link.welcome().session;
  ceiling_ = link.welcome().ceiling;
  lease_ = base::Milliseconds(link.welcome().lease_ms);
  parts_.roster.take(*this, *hello_.session);
  if (!std::exchange(welcomed_, true)) parts_.counts.let_in(now() - alone_since_);
  wire::Frame frame = link.welcome_frame();
  base::Json header = *base::parse_json(frame.header);
  header["expiresMs"] = expires_ms();
  frame.header = base::to_text(header);
  co_await harness_.outbox.put(wire::encode(frame));
}

aio::Task<> Carrier::bring(std::shared_ptr<ExecutorLink> link) {
  for (;;) {
    auto frame = co_await link->read();
    if (!frame) {
      ending_ = Broken{frame.error().message};
      if (frame.error().code != base::ErrorCode::kInvalid) co_return;
      link->outbox.finish(close_of(CloseReason::kProtocol, frame.error().message));
      co_return co_await aio::sleep_for(parts_.times.hang_up);
    }
    link->pulse.heard(now());
    if (!co_await hand_back(*link, *std::move(frame))) co_return;
  }
}

// False: the link is over.
aio::Task<bool> Carrier::hand_back(ExecutorLink& link, Carried frame) {
  if (frame.is(FrameType::kPing)) link.outbox.pong();
  if (frame.is(FrameType::kPing) || frame.is(FrameType::kPong)) co_return true;
  if (frame.is(FrameType::kChallenge) || frame.is(FrameType::kWelcome)) {
    ending_ = Broken{"it began a handshake where a session is open"};
    co_return false;
  }
  if (frame.is(FrameType::kClose) || frame.is(FrameType::kRenewed)) {
    auto message = message_in(frame.bytes);
    if (auto* close = message ? std::get_if<wire::Close>(&*message) : nullptr) {
      ending_ = std::move(*close);
      co_return false;
    }
    auto* renewed = message ? std::get_if<wire::Renewed>(&*message) : nullptr;
    if (!renewed) {
      ending_ = Broken{message.error().message};
      co_return false;
    }
    const bool moved = std::exchange(ceiling_, renewed->ceiling) != renewed->ceiling;
    if (!std::exchange(renewal_due_, false) && !moved) co_return true;
    renewed->expires_ms = expires_ms();
    co_return co_await harness_.outbox.put(wire::encode(wire::to_frame(*renewed)));
  }
  parts_.counts.to_harness.count(frame.bytes.size());
  handing_back_ = true;
  const bool taken = co_await harness_.outbox.put(std::move(frame.bytes));
  handing_back_ = false;
  link.pulse.heard(now());
  co_return taken;
}

Situation Carrier::situation(bool asked) const {
  return {.sandbox = sandbox_,
          .standing = parts_.directory.standing(sandbox_),
          .welcomed = welcomed_,
          .asked_now = asked,
          .way_holds = way_ && way_->expires > parts_.clock.wall(),
          .quiesced = quiesced_,
          .demanded = demanded_,
          .failures = failures_,
          .jitter = parts_.jitter(),
          .alone = now() - alone_since_,
          .patience = welcomed_ ? lease_ : parts_.times.first_welcome};
}

void Carrier::note(const Ending& ending, const Step& step) const {
  const auto does = std::visit(
      base::Overloaded{[](const Dial&) { return "dials again"; }, [](const Ask&) { return "asks"; },
                       [](const Rest&) { return "rests"; }, [](const Leave&) { return "leaves"; }},
      step);
  // Once, and each time that it goes on for longer.
  const auto log = failures_ <= 1 || failures_ % 10 == 0 ? base::log::info : base::log::debug;
  log("no executor", {{"namespace", sandbox_.space},
                      {"name", sandbox_.name},
                      {"ended", word_for(ending)},
                      {"message", message_of(ending)},
                      {"failures", failures_},
                      {"then", does}});
}

aio::Task<bool> Carrier::follow(Step step) {
  if (const auto* dial = std::get_if<Dial>(&step)) {
    co_await aio::sleep_for(dial->after);
    co_return false;
  }
  if (const auto* ask = std::get_if<Ask>(&step)) {
    co_await aio::sleep_for(ask->after);
    co_return true;
  }
  if (const auto* pause = std::get_if<Rest>(&step)) co_return co_await rest(*pause);
  leave(std::get<Leave>(std::move(step)).close);
  co_await aio::sleep_for(kFarAhead);  // work() ends this.
  co_return false;
}

aio::Task<bool> Carrier::rest(Rest rest) {
  Standing seen = parts_.directory.standing(sandbox_);
  const auto dial_at = rest.dial_after ? std::optional(now() + *rest.dial_after) : std::nullopt;
  bool ask = true;
  while (!demanded_) {
    const Standing stands = parts_.directory.standing(sandbox_);
    const bool runs_again = stands == Standing::kRunning && seen != Standing::kRunning;
    if (runs_again || stands == Standing::kEnded) break;
    seen = stands;
    const bool may_dial = dial_at && seen != Standing::kPaused;
    if (may_dial && now() >= *dial_at) {
      ask = false;
      break;
    }
    const auto patience = may_dial ? *dial_at - now() : kFarAhead;
    co_await aio::race(until_moved(), aio::sleep_for(patience));
  }
  alone_since_ = now();
  co_return ask;
}

aio::Task<> Carrier::until_moved() {
  co_await aio::race(parts_.directory.moved().wait(), moved_.wait());
}

// --- Access, and silence.

aio::Task<> Carrier::keep_access() {
  for (;;) {
    if (executor_ && (renewal_asked_ || now() >= ask_at_)) {
      co_await ask_again();
    } else {
      const auto patience =
          executor_ ? std::max(ask_at_ - now(), base::Milliseconds(1)) : kFarAhead;
      co_await aio::race(moved_.wait(), aio::sleep_for(patience));
    }
  }
}

aio::Task<> Carrier::ask_again() {
  const bool for_the_harness = std::exchange(renewal_asked_, false);
  renewal_due_ |= for_the_harness;
  Answer answer = co_await ask();
  const auto executor = executor_;
  if (auto* way = std::get_if<Way>(&answer)) {
    const bool same_run =
        way_ && way->uid == way_->uid && way->epoch == way_->epoch && way->run == way_->run;
    adopt(std::move(*way));
    if (!executor) co_return;
    if (same_run)
      co_await executor->renew(way_->token);
    else
      executor->reset();  // That one is of the past.
    co_return;
  }
  ask_at_ = now() + parts_.times.ask_after_silence;
  Situation stays = situation(true);
  stays.alone = {};
  Step step = next_step(std::get<NoWay>(answer), stays);
  if (auto* left = std::get_if<Leave>(&step)) co_return leave(std::move(left->close));
  if (!std::exchange(renewal_due_, false)) co_return;
  co_await harness_.outbox.put(wire::encode(wire::to_frame(wire::Renewed{ceiling_, expires_ms()})));
}

// Until the harness counts as gone.
aio::Task<> Carrier::watch() {
  for (;;) {
    co_await aio::sleep_for(parts_.times.look);
    if (leaving_ && now() - *leaving_ >= parts_.times.last_word) co_return;
    look_at_harness();
    look_at_executor();
  }
}

// Who is not listened to because the other is behind cannot be heard; it hears from us.
void Carrier::look_at_harness() {
  if (harness_pulse_.dead(now()) && !handing_on_)
    leave(close_of(CloseReason::kSilent, "nothing was heard of it"));
  if (harness_pulse_.ask(now())) harness_.outbox.ping();
}

void Carrier::look_at_executor() {
  if (!executor_) return;
  if (executor_->pulse.dead(now()) && !handing_back_) executor_->reset();
  if (executor_->pulse.ask(now())) executor_->outbox.ping();
}

std::int64_t Carrier::expires_ms() const {
  const auto end = token_ ? end_of_token(*token_) : std::nullopt;
  if (!end) return 0;
  return std::max<std::int64_t>((*end - parts_.clock.wall()).count(), 1);
}

}  // namespace agentd
