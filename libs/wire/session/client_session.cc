#include "libs/wire/session/client_session.h"

#include <algorithm>
#include <utility>

#include "libs/base/strings.h"

namespace wire {
namespace {

constexpr std::size_t kArgsBytesMax = kHeaderBytesMax - (64u << 10);

}  // namespace

ClientSession::ClientSession(ClientSettings settings) : settings_(std::move(settings)) {}

void ClientSession::dial(Credential credential, std::string nonce, base::Moment now) {
  cut();
  linked_ = true;
  phase_ = Phase::kDialled;
  dialled_ = now;
  pulse_ = Pulse(now);
  close_.reset();
  Hello hello{.client = settings_.name,
              .features = settings_.features,
              .sandbox = settings_.sandbox,
              .uid = uid_,
              .session = session_,
              .lease_seconds = settings_.lease_seconds};
  if (const auto* proven = std::get_if<SplitToken>(&credential)) {
    hello.claims = proven->claims;
    hello.nonce = nonce;
  } else {
    hello.token = std::get<1>(credential);
  }
  credential_ = std::move(credential);
  nonces_ = {std::move(nonce), {}};
  word_ = std::move(hello);
}

void ClientSession::cut() {
  linked_ = false;
  begin_link();
}

void ClientSession::begin_link() {
  streams_.cut();
  word_.reset();
  ping_due_ = pong_due_ = resume_due_ = false;
  for (auto& [id, waiting] : waiting_) unsent_.insert(id);
  to_cancel_.clear();  // A request that is not named in the resume is cancelled by that.
  window_.begin_link();
}

void ClientSession::tick(base::Moment now) {
  if (!linked_) return;
  window_.hurry();
  const bool opens = phase_ != Phase::kOpen;
  if (pulse_.dead(now) || (opens && now - dialled_ >= kOpenWithin))
    return close(CloseReason::kSilent, "nothing was heard of the server");
  if (!opens && pulse_.ask(now)) ping_due_ = true;
}

void ClientSession::renew(Credential credential) {
  if (!linked_ || phase_ != Phase::kOpen) return;
  if (const auto* proven = std::get_if<SplitToken>(&credential)) {
    word_ = Renew{.claims = proven->claims,
                  .proof = link_proof(ProofOf::kRenewal, proven->secret, nonces_)};
  } else {
    word_ = Renew{.token = std::get<1>(credential).value_or("")};
  }
}

void ClientSession::finish() {
  if (!linked_) return;
  cut();
  close_ = Close{CloseReason::kEnd};
}

void ClientSession::abandon(const Failure& why) {
  cut();
  session_.reset();
  begin_session();
  while (!waiting_.empty()) fail(waiting_.begin()->first, why);
}

void ClientSession::close(CloseReason reason, std::string_view message) {
  cut();
  close_ = Close{reason, std::string(base::cut(message, 1024))};
  events_.emplace_back(Closed{*close_});
}

void ClientSession::receive(Frame frame, base::Moment now) {
  if (!linked_) return;
  pulse_.heard(now);
  auto message = to_message(std::move(frame));
  if (!message) return close(CloseReason::kProtocol, message.error().message);
  receive(*std::move(message));
}

void ClientSession::receive(Message message) {
  if (auto* closed = std::get_if<Close>(&message)) {
    cut();
    events_.emplace_back(Closed{std::move(*closed)});
  } else if (phase_ == Phase::kDialled || phase_ == Phase::kChallenged) {
    shake_hands(std::move(message));
  } else if (auto* welcome = std::get_if<Welcome>(&message)) {
    begin_link();  // Whoever is between has dialled anew.
    receive(std::move(*welcome));
  } else if (std::holds_alternative<Ping>(message)) {
    pong_due_ = true;
  } else if (const auto* resume = std::get_if<Resume>(&message)) {
    receive(*resume);
  } else if (!std::holds_alternative<Pong>(message)) {
    receive_in_session(std::move(message));
  }
}

void ClientSession::shake_hands(Message message) {
  const auto* token = std::get_if<SplitToken>(&credential_);
  const bool welcomed_now = phase_ == Phase::kChallenged || !token;
  if (auto* welcome = std::get_if<Welcome>(&message); welcome && welcomed_now)
    return receive(std::move(*welcome));
  const auto* challenge = std::get_if<Challenge>(&message);
  if (!challenge || welcomed_now)
    return close(token ? CloseReason::kImpostor : CloseReason::kProtocol,
                 "it did not answer as a server does");
  nonces_.server = challenge->nonce;
  if (!is_link_proof(challenge->proof, ProofOf::kExecutor, token->secret, nonces_))
    return close(CloseReason::kImpostor, "it does not know the executor's key");
  word_ = Prove{link_proof(ProofOf::kClient, token->secret, nonces_)};
  phase_ = Phase::kChallenged;
}

void ClientSession::receive(Welcome welcome) {
  if (welcome.resumed && (session_ != welcome.session || instance_ != welcome.instance))
    return close(CloseReason::kProtocol, "it goes on with a session that is not this one");
  const bool anew = session_.has_value() && !welcome.resumed;
  session_ = welcome.session;
  uid_ = welcome.uid;
  instance_ = welcome.instance;
  link_ = welcome.link;
  limits_ = welcome.limits;
  phase_ = Phase::kWelcomed;
  resume_due_ = true;
  events_.emplace_back(Welcomed{std::move(welcome)});
  if (anew) begin_session();
}

// The old session is gone, and this one knows nothing of it.
void ClientSession::begin_session() {
  window_.begin_session();
  std::vector<std::uint32_t> unknown, lost;
  for (auto& [id, waiting] : waiting_) {
    const Incoming* download = streams_.incoming(id);
    const Outgoing* upload = streams_.outgoing(id);
    if (waiting.seq)
      unknown.push_back(id);
    else if ((download && !download->untouched()) || (upload && !upload->untouched()))
      lost.push_back(id);
    waiting.sent = false;
  }
  for (const std::uint32_t id : unknown)
    fail(id, failure(FailureCode::kOutcomeUnknown, "its session was lost before the reply came"));
  for (const std::uint32_t id : lost)
    fail(id, failure(FailureCode::kLost, "its session was lost while it was under way"));

  const auto first = first_credit();
  std::vector<std::uint32_t> over;
  for (auto& [id, stream] : streams_.all_outgoing()) {
    if (const auto found = first.find(id); found != first.end())
      stream.restart(found->second);
    else
      over.push_back(id);
  }
  for (const std::uint32_t id : over) {
    streams_.forget_outgoing(id);
    events_.emplace_back(StreamUnwanted{id});
  }
  for (auto& [id, stream] : streams_.all_incoming()) {
    if (first.contains(id)) {
      stream = Incoming();
    } else if (!stream.ended()) {
      stream.break_off(failure(FailureCode::kLost, "its session was lost"));
      events_.emplace_back(StreamArrived{id});
    }
  }
}

std::int64_t ClientSession::first_bytes() const {
  return std::min<std::int64_t>(limits_.first_bytes, kFirstBytesMax);
}

// Of the streams of all that waits for a reply: what may be sent of each before the server says so.
std::map<std::uint32_t, std::int64_t> ClientSession::first_credit() const {
  std::map<std::uint32_t, std::int64_t> first;
  for (const auto& [id, waiting] : waiting_) {
    first[id] = first_bytes();
    for (const std::uint32_t further : waiting.call.to_server) first[further] = 0;
    for (const std::uint32_t further : waiting.call.to_client) first[further] = 0;
  }
  return first;
}

void ClientSession::receive(const Resume& resume) {
  if (phase_ != Phase::kWelcomed) return close(CloseReason::kProtocol, "it resumed twice");
  phase_ = Phase::kOpen;
  std::map<std::uint32_t, Receiving> named;
  for (const Receiving& row : resume.receiving) named[row.stream] = row;
  const auto first = first_credit();
  std::vector<std::uint32_t> over;
  for (auto& [id, stream] : streams_.all_outgoing()) {
    const auto unseen = first.find(id);
    if (const auto row = named.find(id); row != named.end()) {
      const auto& [stream_id, received, limit, ended] = row->second;
      if (const auto went_on = stream.go_on(received, limit, ended); !went_on)
        return close(CloseReason::kProtocol, went_on.error().message);
      if (stream.done())
        over.push_back(id);
      else
        events_.emplace_back(StreamRoom{id});  // What was received meanwhile is held no more.
    } else if (unseen == first.end()) {
      over.push_back(id);
    } else if (stream.untouched()) {
      stream.restart(unseen->second);
    }  // Else the reply is on its way, and nobody needs the rest.
  }
  for (const std::uint32_t id : over) {
    streams_.forget_outgoing(id);
    events_.emplace_back(StreamUnwanted{id});
  }
}

void ClientSession::receive_in_session(Message message) {
  if (phase_ != Phase::kOpen) return close(CloseReason::kProtocol, "it did not begin with resume");
  std::visit(
      base::Overloaded{
          [this](Reply& reply) { receive(std::move(reply)); },
          [this](Data& data) {
            const std::uint32_t stream = data.stream;
            const auto news = streams_.receive(std::move(data));
            if (!news) return close(CloseReason::kProtocol, news.error().message);
            if (*news) events_.emplace_back(StreamArrived{stream});
          },
          [this](const Credit& credit) {
            const auto news = streams_.receive(credit);
            if (!news) return close(CloseReason::kProtocol, news.error().message);
            if (*news) events_.emplace_back(StreamRoom{credit.stream});
          },
          [this](const Stop& stop) {
            if (streams_.receive(stop)) events_.emplace_back(StreamUnwanted{stop.stream});
          },
          [this](const Notice& notice) {
            if (window_.hear(notice)) events_.emplace_back(Noticed{notice});
          },
          [this](const Renewed& renewed) { events_.emplace_back(CredentialRenewed{renewed}); },
          [this](const auto&) {
            close(CloseReason::kProtocol, "a message that only the client sends");
          }},
      message);
}

void ClientSession::receive(Reply reply) {
  const auto found = waiting_.find(reply.id);
  if (found == waiting_.end()) return;  // Again, or given up.
  const auto seq = found->second.seq;
  if (reply.error) {
    const FailureCode code = reply.error->code;
    fail(reply.id, *std::move(reply.error));
    // Numbers are sent in order, unless one was refused that its own limits allow.
    if (seq && code == FailureCode::kOutOfSequence)
      return close(CloseReason::kProtocol, "it did not count a request as this side does");
  } else {
    unsent_.erase(reply.id);
    waiting_.erase(found);
    streams_.forget_outgoing(reply.id);
    events_.emplace_back(Answered{reply.id, *std::move(reply.ok)});
    if (Incoming* download = streams_.incoming(reply.id)) {
      const auto begun = download->receive({.payload = std::move(reply.payload), .end = reply.end});
      if (!begun) return close(CloseReason::kProtocol, begun.error().message);
      if (reply.end) download->end_is_known();
      streams_.credit_due(reply.id);
      events_.emplace_back(StreamArrived{reply.id});
    }
  }
  if (seq) window_.answered(*seq);
}

void ClientSession::fail(std::uint32_t id, Failure failure) {
  const auto found = waiting_.find(id);
  forget_streams(id, found->second.call);
  unsent_.erase(id);
  waiting_.erase(found);
  events_.emplace_back(Failed{id, std::move(failure)});
}

void ClientSession::forget_streams(std::uint32_t id, const Call& call) {
  streams_.forget_outgoing(id);
  streams_.forget_incoming(id);
  for (const std::uint32_t stream : call.to_server) streams_.forget_outgoing(stream);
  for (const std::uint32_t stream : call.to_client) streams_.forget_incoming(stream);
}

base::Result<std::uint32_t> ClientSession::ask(Call call) {
  using base::ErrorCode;
  const std::size_t fresh = call.up + call.down + call.to_client.size() + call.to_server.size();
  if (waiting_.size() >= kRequestsMax)
    return base::error(ErrorCode::kRateLimited, "too many requests wait for their replies");
  // The server may count the uploads of what it has not answered for longer.
  if (streams_.size() + waiting_.size() + fresh + 1 > kStreamsMax)
    return base::error(ErrorCode::kRateLimited, "too many streams are open");
  if (base::to_text(call.args).size() > kArgsBytesMax)
    return base::error(ErrorCode::kInvalid, "the request is longer than a frame");
  const std::uint32_t id = ++last_id_;
  if (call.up) streams_.open_outgoing(id, kFirstBytesMax);
  if (call.down) streams_.open_incoming(id, 0);
  for (const std::uint32_t stream : call.to_server) streams_.open_outgoing(stream, 0);
  for (const std::uint32_t stream : call.to_client) streams_.open_incoming(stream, 0);
  waiting_.emplace(id, Waiting{.call = std::move(call)});
  unsent_.insert(id);
  return id;
}

void ClientSession::cancel(std::uint32_t id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  Waiting& waiting = found->second;
  if (!waiting.call.mutating) {
    if (!unsent_.contains(id)) to_cancel_.insert(id);
    streams_.stop(id);  // Should it have been answered meanwhile.
  } else if (waiting.seq) {
    waiting.cancelled = true;  // Its reply tells what became of it.
    if (!unsent_.contains(id)) to_cancel_.insert(id);
    return;
  }
  fail(id, failure(FailureCode::kCancelled, "it was cancelled"));
}

void ClientSession::append(std::uint32_t stream, std::string_view bytes) {
  if (Outgoing* out = streams_.outgoing(stream)) out->append(bytes);
}

void ClientSession::end(std::uint32_t stream) {
  if (Outgoing* out = streams_.outgoing(stream)) out->end();
}

std::optional<Frame> ClientSession::next() {
  if (close_) return to_frame(*std::exchange(close_, std::nullopt));
  if (!linked_) return std::nullopt;
  auto message = next_message();
  if (!message) return std::nullopt;
  return to_frame(*std::move(message));
}

std::optional<Message> ClientSession::next_message() {
  if (word_) return std::exchange(word_, std::nullopt);
  if (std::exchange(resume_due_, false)) return Message(resume());
  if (phase_ != Phase::kOpen) return std::nullopt;
  if (std::exchange(pong_due_, false)) return Message(Pong{});
  if (std::exchange(ping_due_, false)) return Message(Ping{});
  if (auto ack = window_.next_ack()) return Message(*std::move(ack));
  // What is given up makes room for what is asked.
  if (!to_cancel_.empty()) return Message(Cancel{to_cancel_.extract(to_cancel_.begin()).value()});
  if (auto stop = streams_.next_stop()) return Message(*stop);
  if (auto request = next_request()) return Message(*std::move(request));
  return streams_.next([this](std::uint32_t id) { return !belongs_to_unsent(id); });
}

bool ClientSession::belongs_to_unsent(std::uint32_t stream) const {
  return std::ranges::any_of(unsent_, [&](std::uint32_t id) {
    return id == stream || names(waiting_.at(id).call.to_server, stream);
  });
}

Resume ClientSession::resume() {
  Resume resume{.link = link_, .receiving = streams_.state()};
  for (const auto& [id, waiting] : waiting_)
    if (waiting.sent) resume.requests.push_back(id);
  return resume;
}

bool ClientSession::fits_the_window(const Waiting& waiting) const {
  const auto in_flight = static_cast<std::int64_t>(waiting_.size() - unsent_.size());
  if (in_flight >= limits_.requests) return false;
  return !waiting.call.mutating || waiting.seq || window_.has_room(limits_.replies);
}

std::optional<Request> ClientSession::next_request() {
  for (const std::uint32_t id : unsent_) {
    Waiting& waiting = waiting_.at(id);
    if (!fits_the_window(waiting)) {
      window_.hurry();  // What there is to be acknowledged makes room.
      continue;
    }
    unsent_.erase(id);
    return to_request(id, waiting);
  }
  return std::nullopt;
}

Request ClientSession::to_request(std::uint32_t id, Waiting& waiting) {
  const Call& call = waiting.call;
  Request request{.id = id,
                  .op = call.op,
                  .args = call.args,
                  .up = call.up,
                  .permission_mode = call.permission_mode,
                  .workspace_root = call.workspace_root};
  if (call.mutating) {
    if (!waiting.seq) waiting.seq = window_.next_number();
    request.seq = waiting.seq;
    request.kept = window_.kept();
  }
  const auto limit_of = [this](std::uint32_t stream) {
    Incoming* in = streams_.incoming(stream);
    return in ? in->state(stream_allowance(streams_.granted())).limit : 0;
  };
  if (call.down) request.down = limit_of(id);
  for (const std::uint32_t stream : call.to_client)
    request.streams.push_back({stream, limit_of(stream)});
  for (const std::uint32_t stream : call.to_server) request.streams.push_back({stream, {}});
  Outgoing* upload = streams_.outgoing(id);
  const bool first_time = !std::exchange(waiting.sent, true);
  if (first_time && upload) upload->restart(first_bytes());
  if (first_time && upload && upload->may_begin()) {
    Data first = upload->next(streams_.next_chunk());
    request.payload = std::move(first.payload);
    request.end = first.end;
  }
  if (waiting.cancelled) to_cancel_.insert(id);
  // What was given up before it was asked for.
  if (call.down) streams_.stop_if_gone(id);
  for (const std::uint32_t stream : call.to_client) streams_.stop_if_gone(stream);
  return request;
}

}  // namespace wire
