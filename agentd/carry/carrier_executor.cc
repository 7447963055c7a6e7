#include <utility>

#include "agentd/carry/carrier.h"
#include "agentd/carry/carrier_words.h"
#include "agentd/carry/standstill.h"
#include "libs/base/log.h"

// The way in, the link to the executor, and what to do when that ends.
namespace agentd {
namespace {

using wire::CloseReason;
using wire::FrameType;
using namespace std::chrono_literals;

// Who is sent away again within this time has not got through.
constexpr base::Milliseconds kFleeting = 5s;

std::string_view to_word(const Ending& ending) {
  return std::visit(
      base::Overloaded{[](const NoWay&) -> std::string_view { return "no way"; },
                       [](const Unreachable&) -> std::string_view { return "unreachable"; },
                       [](const Impostor&) -> std::string_view { return "impostor"; },
                       [](const Broken&) -> std::string_view { return "broken"; },
                       [](const wire::Close& close) { return to_word(close.reason); }},
      ending);
}

std::string_view to_word(const wire::Welcome& welcome) {
  if (welcome.resumed) return "resumed";
  return welcome.why ? to_word(*welcome.why) : "new";
}

bool is_nobody_there(const Ending& ending) {
  return std::holds_alternative<Unreachable>(ending) || std::holds_alternative<Impostor>(ending);
}

std::string message_of(const Ending& ending) {
  return std::visit(base::Overloaded{[](const Impostor&) { return std::string(); },
                                     [](const auto& one) { return one.message; }},
                    ending);
}

}  // namespace

aio::Task<> Carrier::pursue() {
  bool ask = true;
  for (;;) {
    const Ending ending = co_await attempt(ask);
    if (parted_) co_return co_await aio::sleep_for(kFarAhead);  // As it was told to.
    const auto* close = std::get_if<wire::Close>(&ending);
    quiesced_ |= close && close->reason == CloseReason::kQuiesce;
    Step step = next_step(ending, situation(ask));
    ++failures_;
    note(ending, step);
    ask = co_await follow(std::move(step));
  }
}

aio::Task<Ending> Carrier::attempt(bool ask) {
  wanted_ = false;
  if (ask || !access_.way()) {
    auto answer = co_await access_.ask();
    if (auto* none = std::get_if<NoWay>(&answer)) co_return std::move(*none);
  }
  if (hello_.session) parts_.roster.take(*this, *hello_.session);
  auto opened =
      co_await ExecutorLink::open(parts_.executor, parts_.dialler, *access_.way(), hello_, now());
  auto* failed = std::get_if<Ending>(&opened);
  parts_.counts.dialled(welcomed_, failed ? to_word(*failed) : "welcome");
  if (failed && is_nobody_there(*failed)) access_.failed();
  if (failed) co_return std::move(*failed);
  co_return co_await carry(std::get<0>(std::move(opened)));
}

aio::Task<Ending> Carrier::carry(std::shared_ptr<ExecutorLink> link) {
  const base::Moment began = now();
  ending_.reset();
  resumed_ = quiesced_ = demanded_ = unheard_ = handing_back_ = false;
  unanswered_.clear();
  link_ = link->welcome().link;
  access_.begin_link();
  executor_ = link;
  moved_.notify_all();
  co_await welcome(*link);
  co_await aio::race(bring(link), link->speak(parts_.times.hang_up));
  link->reset();
  executor_.reset();
  alone_since_ = now();
  unheard_ = unanswered_.any(now());
  moved_.notify_all();
  Ending ending = std::move(ending_).value_or(Broken{"the connection was cut"});
  const bool sent_away = std::holds_alternative<wire::Close>(ending);
  if (now() - began >= kFleeting || (resumed_ && !sent_away)) failures_ = 0;
  co_return ending;
}

// The harness hears what the executor says, but for how long its own credential is good.
aio::Task<> Carrier::welcome(ExecutorLink& link) {
  access_.bind_to(link.welcome().uid);
  hello_.session = link.welcome().session;
  ceiling_ = link.welcome().ceiling;
  lease_ = base::Milliseconds(link.welcome().lease_ms);
  parts_.roster.take(*this, *hello_.session);
  parts_.counts.welcomed(to_word(link.welcome()));
  if (!std::exchange(welcomed_, true)) parts_.counts.let_in(now() - alone_since_);
  wire::Frame frame = link.welcome_frame();
  base::Json header = *base::parse_json(frame.header);
  header["expiresMs"] = access_.expires_ms();
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
      // What the harness brought last is not of the subject that its session belongs to.
      if (close->reason == CloseReason::kDenied && access_.take_answer_due()) leave(*close);
      ending_ = std::move(*close);
      co_return false;
    }
    auto* renewed = message ? std::get_if<wire::Renewed>(&*message) : nullptr;
    if (!renewed) {
      ending_ = Broken{message.error().message};
      co_return false;
    }
    const bool moved = std::exchange(ceiling_, renewed->ceiling) != renewed->ceiling;
    if (!access_.take_answer_due() && !moved) co_return true;
    renewed->expires_ms = access_.expires_ms();
    co_await harness_.outbox.put(wire::encode(wire::to_frame(*renewed)));
    co_return true;
  }
  if (frame.is(FrameType::kReply)) unanswered_.answered(frame.stream);
  parts_.counts.to_harness.count(frame.bytes.size());
  handing_back_ = true;
  co_await harness_.outbox.put(
      std::move(frame.bytes));  // Who is gone may still have said something.
  handing_back_ = false;
  link.pulse.heard(now());
  co_return true;
}

Situation Carrier::situation(bool asked) const {
  return {.sandbox = access_.sandbox(),
          .standing = access_.standing(),
          .welcomed = welcomed_,
          .asked_now = asked,
          .way_holds = access_.holds(),
          .quiesced = quiesced_,
          .demanded = demanded_,
          .unheard = unheard_,
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
  log("no executor", {{"namespace", access_.sandbox().space},
                      {"name", access_.sandbox().name},
                      {"ended", to_word(ending)},
                      {"message", message_of(ending)},
                      {"failures", failures_},
                      {"then", does}});
}

aio::Task<bool> Carrier::follow(Step step) {
  const Standstill standstill{parts_.directory, access_.sandbox(), parts_.clock};
  if (const auto* dial = std::get_if<Dial>(&step)) {
    co_await aio::sleep_for(dial->after);
    co_return false;
  }
  if (const auto* ask = std::get_if<Ask>(&step)) {
    co_await aio::race(until_it_runs(standstill), aio::sleep_for(ask->after));
    co_return true;
  }
  if (const auto* pause = std::get_if<Rest>(&step)) {
    const bool ask = co_await rest(standstill, *pause, moved_, wanted_);
    alone_since_ = now();
    co_return ask;
  }
  leave(std::get<Leave>(std::move(step)).close);
  co_await aio::sleep_for(kFarAhead);  // work() ends this.
  co_return false;
}

}  // namespace agentd
