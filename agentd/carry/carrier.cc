#include "agentd/carry/carrier.h"

#include <utility>

#include "agentd/carry/carrier_words.h"
#include "libs/base/log.h"

// The whole of it, and what goes on beside: access and silence.
namespace agentd {

using wire::CloseReason;

Carrier::Carrier(const CarrierParts& parts, std::shared_ptr<aio::Stream> harness, Caller caller)
    : parts_(parts),
      caller_(std::move(caller)),
      harness_(parts.executor, std::move(harness)),
      harness_pulse_(parts.clock.now()),
      access_(parts, caller_.token),
      alone_since_(parts.clock.now()),
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
  base::log::debug("harness link is over", {{"namespace", access_.sandbox().space},
                                            {"name", access_.sandbox().name},
                                            {"peer", caller_.name},
                                            {"ms", (now() - began).count()}});
}

void Carrier::leave(wire::Close close) {
  if (leaving_) return;
  leaving_ = now();
  const wire::SandboxName& sandbox = access_.sandbox();
  const auto log = sandbox.name.empty() ? base::log::debug : base::log::info;  // A stranger.
  log("harness link ends", {{"namespace", sandbox.space},
                            {"name", sandbox.name},
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
  co_await aio::race(until([this] { return leaving_.has_value(); }), keep_up());
  if (executor_) executor_->reset();
  executor_.reset();
  co_await aio::sleep_for(kFarAhead);  // The harness reads why, and hangs up.
}

aio::Task<> Carrier::keep_up() { co_await aio::race(pursue(), keep_access()); }

aio::Task<> Carrier::until(std::function<bool()> holds) {
  while (!holds()) co_await moved_.wait();
}

aio::Task<> Carrier::keep_access() {
  for (;;) {
    const base::Milliseconds due_in = executor_ ? access_.due_in() : kFarAhead;
    if (due_in == base::Milliseconds(0))
      co_await ask_again();
    else
      co_await aio::race(moved_.wait(), aio::sleep_for(due_in));
  }
}

aio::Task<> Carrier::ask_again() {
  const auto answer = co_await access_.ask_again();
  const auto executor = executor_;
  if (const auto* given = std::get_if<Given>(&answer)) {
    if (!executor) co_return;
    if (given->same_run)
      co_await executor->renew(access_.way()->token);
    else
      executor->reset();  // That one is of the past.
    co_return;
  }
  Situation stays = situation(true);
  stays.alone = {};
  Step step = next_step(std::get<NoWay>(answer), stays);
  const bool is_answer = access_.take_answer_due();
  if (auto* left = std::get_if<Leave>(&step)) {
    // It is not the credential by which it came in that has ended.
    if (is_answer && left->close.reason == CloseReason::kExpired)
      left->close.reason = CloseReason::kDenied;
    co_return leave(std::move(left->close));
  }
  if (!is_answer) co_return;
  co_await harness_.outbox.put(
      wire::encode(wire::to_frame(wire::Renewed{ceiling_, access_.expires_ms()})));
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
  if (gone_) return;
  if (harness_pulse_.dead(now()) && !handing_on_)
    leave(close_of(CloseReason::kSilent, "nothing was heard of it"));
  if (harness_pulse_.ask(now())) harness_.outbox.ping();
}

void Carrier::look_at_executor() {
  if (!executor_) return;
  if (executor_->pulse.dead(now()) && !handing_back_) executor_->reset();
  if (executor_->pulse.ask(now())) executor_->outbox.ping();
}

}  // namespace agentd
