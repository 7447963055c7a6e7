#include <utility>

#include "agentd/carry/carrier.h"
#include "agentd/carry/carrier_words.h"
#include "libs/base/log.h"
#include "libs/wire/frames/operations.h"

// What the harness says.
namespace agentd {
namespace {

using wire::CloseReason;
using wire::FrameType;

// Of what a harness sends.
bool is_looked_into(const Carried& frame) {
  return frame.is(FrameType::kHello) || frame.is(FrameType::kProve) ||
         frame.is(FrameType::kRenew) || frame.is(FrameType::kResume) || frame.is(FrameType::kClose);
}

// Whoever asks so waits for others. Most requests do not even name such an operation, and are not
// read for that.
bool only_waits(std::string_view request) {
  const auto names = [request](std::string_view op) { return request.find(op) != request.npos; };
  if (!names(wire::WaitArgs::kOp) && !names(wire::WatchArgs::kOp) &&
      !names(wire::ReadOutputArgs::kOp))
    return false;
  const auto message = message_in(request);
  const auto* read = message ? std::get_if<wire::Request>(&*message) : nullptr;
  return read && wire::only_waits(*read);
}

// Bytes, their end, or room for more of them: its reader has read on. That it knows of an end is no
// wish.
bool moves_bytes(const Carried& frame) {
  if (!frame.is(FrameType::kCredit)) return frame.is(FrameType::kData);
  const auto message = message_in(frame.bytes);
  const auto* credit = message ? std::get_if<wire::Credit>(&*message) : nullptr;
  return credit && !credit->ended;
}

wire::Close hung_up() { return close_of(CloseReason::kSilent, "its harness hung up"); }

}  // namespace

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
  if (!access_.accepts(hello->token))
    return close_of(CloseReason::kDenied, "it did not show the token that this agentd asks for");
  const auto& sandbox = hello->sandbox ? hello->sandbox : parts_.usual;
  if (!sandbox)
    return close_of(CloseReason::kProtocol,
                    "hello names no sandbox, and this agentd has none of its own (--sandbox)");
  access_.begin(*sandbox, std::exchange(hello->token, std::nullopt));
  if (hello->uid) access_.bind_to(*hello->uid);
  if (!parts_.roster.enter(*this, access_.sandbox())) {
    wire::Close close = close_of(CloseReason::kBusy, "too many links are open");
    close.retry_after_ms = 5'000;
    return close;
  }
  parts_.counts.links(parts_.roster.links());
  hello_ = std::move(*hello);
  hello_.protocol = {};  // What agentd speaks.
  alone_since_ = now();
  base::log::info("harness link begins", {{"namespace", access_.sandbox().space},
                                          {"name", access_.sandbox().name},
                                          {"peer", caller_.name},
                                          {"client", base::on_one_line(hello_.client)},
                                          {"resumes", hello_.session.has_value()}});
  return std::nullopt;
}

aio::Task<> Carrier::listen() {
  for (;;) {
    auto frame = co_await harness_.read();
    if (!frame) {
      co_await refuse(frame.error().message);
      co_return co_await aio::sleep_for(parts_.times.last_word);  // It has no frames any more.
    }
    if (!*frame) co_return co_await part(hung_up());
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
      co_await refuse(message.error().message);
      co_return true;
    }
    if (const auto* close = std::get_if<wire::Close>(&*message)) {
      const bool ends =
          close->reason == CloseReason::kEnd || close->reason == CloseReason::kProtocol;
      co_await part(ends ? *close : hung_up());
      co_return false;
    }
    if (auto* renewal = std::get_if<wire::Renew>(&*message)) {
      if (auto refused = access_.take(std::move(*renewal))) leave(*std::move(refused));
      moved_.notify_all();
      co_return true;
    }
    const auto* resume = std::get_if<wire::Resume>(&*message);
    if (!resume) {
      co_await refuse("a handshake where a session is open");
      co_return true;
    }
    resumed_ = executor_ && resume->link == link_;
  }
  if (!executor_) want(frame);
  const auto executor = executor_;
  // What comes before it names the link was meant for one before.
  if (!executor || !resumed_) co_return true;
  if (frame.is(FrameType::kRequest) && !only_waits(frame.bytes))
    unanswered_.sent(frame.stream, now());
  if (moves_bytes(frame)) unanswered_.moved_bytes(now());
  parts_.counts.to_executor.count(frame.bytes.size());
  handing_on_ = true;
  co_await executor->outbox.put(std::move(frame.bytes));
  handing_on_ = false;
  harness_pulse_.heard(now());
  co_return true;
}

// What comes while there is no executor is dropped, and sent again by its session once there is
// one. Who waits for bytes to move goes on waiting where nobody wakes it, unlike who has asked.
void Carrier::want(const Carried& frame) {
  const bool asks = frame.is(FrameType::kRequest);
  if (!asks && !moves_bytes(frame)) return;
  if (std::exchange(asks ? demanded_ : unheard_, true)) return;
  wanted_ = true;
  moved_.notify_all();
}

// It broke the rules, and with them its session.
aio::Task<> Carrier::refuse(std::string why) {
  if (executor_) co_await part(close_of(CloseReason::kProtocol, why));
  leave(close_of(CloseReason::kProtocol, why));
}

// What the harness has said goes on before that it is gone. An executor that is away is waited for
// when a session is to end; not for too long, since its lease ends it too.
aio::Task<> Carrier::part(wire::Close last) {
  const bool ends = last.reason != CloseReason::kSilent;
  gone_ = true;
  parts_.roster.part(*this);
  parts_.counts.links(parts_.roster.links());
  if (ends && welcomed_)
    co_await aio::race(until([this] { return executor_ != nullptr; }),
                       aio::sleep_for(parts_.times.end_later));
  if (!executor_ || leaving_) co_return;
  parted_ = true;
  executor_->outbox.finish(std::move(last));
  const auto patience = ends ? parts_.times.last_word : parts_.times.hang_up;
  co_await aio::race(until([this] { return !executor_; }), aio::sleep_for(patience));
}

}  // namespace agentd
