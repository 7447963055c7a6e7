#include "agentd/carry/executor_link.h"

#include <utility>

#include "libs/wire/proof.h"
#include "libs/wire/session/endpoint.h"

namespace agentd {
namespace {

constexpr base::Milliseconds kConnectWithin{5'000};
constexpr base::Milliseconds kUpgradeWithin{10'000};
constexpr base::Milliseconds kProofWithin{10'000};

}  // namespace

ExecutorLink::ExecutorLink(aio::Executor executor, std::shared_ptr<aio::WebSocket> socket,
                           base::Moment now)
    : outbox(std::move(executor)), pulse(now), socket_(std::move(socket)) {}

aio::Task<ExecutorLink::Opened> ExecutorLink::open(aio::Executor executor, const Dialler& dialler,
                                                   Way way, wire::Hello hello, base::Moment now) {
  const auto token = wire::split_token(way.token);
  if (!token) co_return Ending(Unreachable{token.error().message});
  const auto place = place_of(way.url);
  if (!place) co_return Ending(Unreachable{place.error().message});
  auto stream = co_await dialler.dial(*place, kConnectWithin);
  if (!stream) co_return Ending(Unreachable{stream.error().message});
  auto socket = co_await aio::WebSocket::open(*std::move(stream), place->authority(),
                                              place->path + wire::kSessionPath, way.headers,
                                              {.subprotocol = wire::kSessionSubprotocol,
                                               .message_bytes_max = wire::kFrameBytesMax,
                                               .handshake_within = kUpgradeWithin});
  if (!socket)
    co_return Ending(Unreachable{.message = socket.error().message,
                                 .denied = socket.error().code == base::ErrorCode::kDenied});
  const std::shared_ptr<ExecutorLink> link(
      new ExecutorLink(std::move(executor), *std::move(socket), now));
  auto failed = co_await aio::within(link->shake_hands(std::move(hello), *token), kProofWithin);
  if (!failed) co_return Ending(Unreachable{"it did not finish the handshake in time"});
  if (*failed) co_return **std::move(failed);
  co_return link;
}

// What comes back for a message of the handshake.
aio::Task<base::Result<wire::Message>> ExecutorLink::exchange(wire::Message message) {
  CO_CHECK_OK(co_await socket_->write(wire::encode(wire::to_frame(std::move(message)))));
  for (;;) {
    CO_TRY(const std::string bytes, co_await socket_->read());
    CO_TRY(auto frame, wire::decode(bytes));
    if (!frame) continue;
    welcome_frame_ = *frame;
    co_return wire::to_message(*std::move(frame));
  }
}

aio::Task<std::optional<Ending>> ExecutorLink::shake_hands(wire::Hello hello,
                                                           wire::SplitToken token) {
  nonces_.client = wire::new_nonce();
  hello.sandbox.reset();
  hello.token.reset();
  hello.claims = token.claims;
  hello.nonce = nonces_.client;
  auto answer = co_await exchange(std::move(hello));
  if (!answer) co_return Unreachable{answer.error().message};
  if (auto* close = std::get_if<wire::Close>(&*answer)) co_return std::move(*close);
  const auto* challenge = std::get_if<wire::Challenge>(&*answer);
  if (!challenge) co_return Impostor{};
  nonces_.server = challenge->nonce;
  if (!wire::is_link_proof(challenge->proof, wire::ProofOf::kExecutor, token.secret, nonces_)) {
    static_cast<void>(co_await socket_->write(
        wire::encode(wire::to_frame(wire::Close{.reason = wire::CloseReason::kImpostor}))));
    co_return Impostor{};
  }
  auto welcomed = co_await exchange(
      wire::Prove{wire::link_proof(wire::ProofOf::kClient, token.secret, nonces_)});
  if (!welcomed) co_return Unreachable{welcomed.error().message};
  if (auto* close = std::get_if<wire::Close>(&*welcomed)) co_return std::move(*close);
  auto* welcome = std::get_if<wire::Welcome>(&*welcomed);
  if (!welcome) co_return Unreachable{"it answered the proof with something else"};
  welcome_ = std::move(*welcome);
  co_return std::nullopt;
}

aio::Task<base::Result<Carried>> ExecutorLink::read() {
  CO_TRY(std::string bytes, co_await socket_->read());
  CO_TRY(const auto frame, wire::look_at(bytes));
  co_return Carried{frame.type, frame.stream, std::move(bytes)};
}

aio::Task<> ExecutorLink::speak(base::Milliseconds hang_up_within) {
  while (auto frame = co_await outbox.take())
    if (!co_await socket_->write(*std::move(frame))) outbox.close();
  co_await aio::sleep_for(hang_up_within);
}

aio::Task<bool> ExecutorLink::renew(std::string token) {
  const auto split = wire::split_token(token);
  if (!split) co_return false;
  wire::Renew renewal{.claims = split->claims,
                      .proof = wire::link_proof(wire::ProofOf::kRenewal, split->secret, nonces_)};
  co_return co_await outbox.put(wire::encode(wire::to_frame(std::move(renewal))));
}

void ExecutorLink::reset() {
  outbox.close();
  socket_->reset();
}

}  // namespace agentd
