#include "libs/wire/session/served_session.h"

#include <algorithm>
#include <utility>

#include "libs/base/strings.h"

namespace wire {
namespace {

base::Error broken(std::string_view how) { return base::error(base::ErrorCode::kInvalid, how); }

}  // namespace

void ServedSession::link_up(std::string link) {
  link_ = std::move(link);
  linked_ = resume_due_ = true;
  peer_resumed_ = false;
  notices_sent_ = notices_.empty() ? notices_made_ : notices_.front().number - 1;
}

void ServedSession::link_down() {
  linked_ = false;
  streams_.cut();
  refusals_.clear();
  for (auto& [id, work] : work_) work.sent_here = false;
}

base::Result<SessionEvents> ServedSession::receive(Message message) {
  const bool resumes = std::holds_alternative<Resume>(message);
  if (resumes == peer_resumed_)
    return broken(resumes ? "it resumed twice" : "it did not begin with resume");
  return std::visit(
      base::Overloaded{
          [this](Resume& resume) { return take_in(std::move(resume)); },
          [this](Request& request) { return take_in(std::move(request)); },
          [this](const Cancel& cancel) { return take_in(cancel); },
          [this](const Ack& ack) { return take_in(ack); },
          [this](Data& data) -> Received {
            const std::uint32_t stream = data.stream;
            TRY(const bool news, streams_.receive(std::move(data)));
            return news ? SessionEvents{Arrived{stream}} : SessionEvents{};
          },
          [this](const Credit& credit) -> Received {
            TRY(const bool news, streams_.receive(credit));
            forget_if_over(credit.stream);
            return news ? SessionEvents{RoomMade{credit.stream}} : SessionEvents{};
          },
          [this](const Stop& stop) -> Received {
            const bool news = streams_.receive(stop);
            forget_if_over(stop.stream);
            return news ? SessionEvents{Unwanted{stop.stream}} : SessionEvents{};
          },
          [](const auto&) -> Received { return broken("a message that only the server sends"); }},
      message);
}

base::Result<SessionEvents> ServedSession::take_in(Resume resume) {
  if (resume.link != link_) return broken("it resumed another link");
  peer_resumed_ = true;
  SessionEvents events;
  std::map<std::uint32_t, Receiving> named;
  for (const Receiving& row : resume.receiving) named[row.stream] = row;
  std::vector<std::uint32_t> over;
  for (auto& [id, stream] : streams_.all_outgoing()) {
    const auto row = named.find(id);
    if (row != named.end())
      CHECK_OK(stream.go_on(row->second.received, row->second.limit, row->second.ended));
    if (row == named.end() || stream.done())
      over.push_back(id);
    else
      events.emplace_back(RoomMade{id});  // What was received meanwhile is held no more.
  }
  for (const std::uint32_t id : over) {
    streams_.forget_outgoing(id);
    events.emplace_back(Unwanted{id});
    forget_if_over(id);
  }
  // What the peer does not ask about any more; of mutating ones the reply stays until acknowledged.
  std::vector<std::uint32_t> given_up;
  for (const auto& [id, work] : work_)
    if (!work.seq && !work.sent && !names(resume.requests, id)) given_up.push_back(id);
  for (const std::uint32_t id : given_up) {
    if (!work_[id].reply) events.emplace_back(Cancelled{id});
    drop(id);
  }
  return events;
}

base::Result<SessionEvents> ServedSession::take_in(Request request) {
  if (request.kept) CHECK_OK(take_in(Ack{.through = request.kept}));
  const auto known = work_.find(request.id);
  if (known != work_.end()) return take_in_again(known->second, request);
  if (refusals_.size() + replies_due_.size() >= kUnreadMax)
    return broken("it does not read its replies");
  if (auto refused = refusal(request)) {
    refusals_.push_back({.id = request.id, .error = std::move(refused)});
    return SessionEvents{};
  }
  std::set<std::uint32_t> fresh{request.id};
  bool clashes = streams_.knows(request.id);
  for (const OpenedStream& stream : request.streams)
    clashes |=
        streams_.knows(stream.id) || work_.contains(stream.id) || !fresh.insert(stream.id).second;
  if (clashes) return broken("an id is in use");
  const bool fits = !request.seq || reply_bytes_kept() + kReplyBytesUsual <= kReplyBytesMax;
  begin(request);
  if (!fits) {
    fail(request.id,
         failure(FailureCode::kRepliesFull, "too much is kept that was not acknowledged"));
    return SessionEvents{};
  }
  if (Incoming* upload = streams_.incoming(request.id)) {
    CHECK_OK(upload->receive({.payload = std::move(request.payload), .end = request.end}));
    if (!request.end) streams_.credit_due(request.id);
  }
  request.payload.clear();
  return SessionEvents{Asked{std::move(request)}};
}

base::Result<SessionEvents> ServedSession::take_in_again(Work& work, const Request& request) {
  if (work.seq != request.seq) return broken("an id is in use");
  if (!work.reply || work.sent_here) return SessionEvents{};  // It comes, or came before this did.
  if (std::ranges::find(replies_due_, request.id) == replies_due_.end())
    replies_due_.push_back(request.id);
  return SessionEvents{};
}

std::optional<Failure> ServedSession::refusal(const Request& request) const {
  if (request.seq) {
    if (by_seq_.contains(*request.seq))
      return failure(FailureCode::kInvalid, "this number belongs to another request");
    if (*request.seq <= seq_highest_)
      return failure(FailureCode::kAlreadyAnswered, "its reply was acknowledged");
    if (*request.seq != seq_highest_ + 1)
      return failure(FailureCode::kOutOfSequence, "a request before it is missing");
    if (by_seq_.size() >= kRepliesMax)
      return failure(FailureCode::kRepliesFull, "too many replies were not acknowledged");
  }
  if (unanswered() >= kRequestsMax)
    return failure(FailureCode::kBusy, "too many requests are unanswered");
  const std::size_t fresh = request.up + request.down.has_value() + request.streams.size();
  // Those in use are counted only where all that are known would be too many.
  if (streams_.size() + fresh > kStreamsMax && streams_in_use() + fresh > kStreamsMax)
    return failure(FailureCode::kBusy, "too many streams are open");
  return std::nullopt;
}

ServedSession::Work& ServedSession::begin(const Request& request) {
  Work& work = work_[request.id];
  work.seq = request.seq;
  work.has_download = request.down.has_value();
  work.further = request.streams;
  if (request.seq) {
    seq_highest_ = *request.seq;
    by_seq_[*request.seq] = request.id;
    work.bytes = kReplyBytesUsual;
  }
  if (request.up) streams_.open_incoming(request.id, kFirstBytesMax, true);
  if (request.down) streams_.open_outgoing(request.id, *request.down);
  for (const OpenedStream& stream : request.streams) {
    if (stream.limit) {
      streams_.open_outgoing(stream.id, *stream.limit);
    } else {
      streams_.open_incoming(stream.id, 0);
      streams_.credit_due(stream.id);
    }
  }
  return work;
}

base::Result<SessionEvents> ServedSession::take_in(const Cancel& cancel) {
  const auto found = work_.find(cancel.id);
  if (found == work_.end() || found->second.reply) return SessionEvents{};
  if (!found->second.seq) drop(cancel.id);
  return SessionEvents{Cancelled{cancel.id}};
}

base::Result<SessionEvents> ServedSession::take_in(const Ack& ack) {
  // A number that was never used here was used by a later life of this executor, if at all.
  const bool beyond = ack.through > seq_highest_ || std::ranges::any_of(ack.also, [this](auto seq) {
                        return seq > seq_highest_;
                      });
  if (beyond) return broken("it acknowledges what it has not asked here: this side was set back");
  if (ack.through)
    for (auto one = by_seq_.begin(); one != by_seq_.end() && one->first <= *ack.through;)
      acknowledge((one++)->first);
  for (const std::int64_t seq : ack.also) acknowledge(seq);
  while (ack.notices && !notices_.empty() && notices_.front().number <= *ack.notices)
    notices_.pop_front();
  return SessionEvents{};
}

void ServedSession::acknowledge(std::int64_t seq) {
  const auto found = by_seq_.find(seq);
  if (found == by_seq_.end()) return;
  const std::uint32_t id = found->second;
  const Work& work = work_.at(id);
  if (!work.sent) return;  // Nobody can have it yet.
  if (work.whole) streams_.forget_outgoing(id);
  std::erase(replies_due_, id);
  by_seq_.erase(found);
  work_.erase(id);
}

void ServedSession::drop(std::uint32_t id) {
  const auto found = work_.find(id);
  if (found == work_.end()) return;
  for (const OpenedStream& stream : found->second.further) {
    streams_.forget_outgoing(stream.id);
    streams_.forget_incoming(stream.id);
  }
  streams_.forget_outgoing(id);
  streams_.forget_incoming(id);
  std::erase(replies_due_, id);
  work_.erase(found);
}

void ServedSession::forget_if_over(std::uint32_t id) {
  const auto found = work_.find(id);
  if (found == work_.end() || found->second.seq || !found->second.sent) return;
  if (!streams_.outgoing(id)) work_.erase(found);
}

bool ServedSession::reserve(std::uint32_t id, std::size_t reply_bytes) {
  const auto found = work_.find(id);
  if (found == work_.end() || found->second.reply || !found->second.seq) return true;
  Work& work = found->second;
  if (reply_bytes <= work.bytes) return true;
  if (reply_bytes_kept() - work.bytes + reply_bytes > kReplyBytesMax) return false;
  work.bytes = reply_bytes;
  return true;
}

std::size_t ServedSession::reply_bytes_kept() {
  std::size_t bytes = 0;
  for (const auto& [id, work] : work_) bytes += work.bytes;
  std::erase_if(bodies_, [this](std::uint32_t id) { return !streams_.outgoing(id); });
  for (const std::uint32_t id : bodies_) bytes += streams_.outgoing(id)->held();
  return bytes;
}

void ServedSession::reply(std::uint32_t id, base::Json ok) {
  const std::size_t bytes = base::to_text(ok).size();
  const auto found = work_.find(id);
  if (found == work_.end() || found->second.reply) return;
  if (bytes > kReplyHeaderBytesMax)
    return fail(id, failure(FailureCode::kInternal, "the reply is longer than a frame"));
  Work& work = found->second;
  if (!work.seq && reply_bytes_kept() + bytes > kReplyBytesMax)
    return fail(id, failure(FailureCode::kBusy, "too many replies wait to be read"));
  work.bytes = bytes;
  if (work.seq && work.has_download) bodies_.insert(id);
  answer(id, {.id = id, .ok = std::move(ok)});
}

void ServedSession::reply_whole(std::uint32_t id, base::Json ok, std::string_view download) {
  append(id, download);
  end(id);
  reply(id, std::move(ok));
}

void ServedSession::fail(std::uint32_t id, Failure failure) {
  const auto found = work_.find(id);
  if (found == work_.end() || found->second.reply) return;
  streams_.forget_outgoing(id);
  for (const OpenedStream& stream : found->second.further) {
    streams_.forget_outgoing(stream.id);
    streams_.forget_incoming(stream.id);
  }
  found->second.bytes = failure.message.size();
  answer(id, {.id = id, .error = std::move(failure)});
}

void ServedSession::answer(std::uint32_t id, Reply reply) {
  streams_.forget_incoming(id);  // Whatever else was uploaded is of no use.
  work_.at(id).reply = std::move(reply);
  replies_due_.push_back(id);
}

void ServedSession::append(std::uint32_t stream, std::string_view bytes) {
  if (Outgoing* out = streams_.outgoing(stream)) out->append(bytes);
}

void ServedSession::skip(std::uint32_t stream, std::int64_t count) {
  if (Outgoing* out = streams_.outgoing(stream)) out->skip(count);
}

void ServedSession::end(std::uint32_t stream, std::optional<Failure> error) {
  if (Outgoing* out = streams_.outgoing(stream)) out->end(std::move(error));
}

std::optional<std::int64_t> ServedSession::acknowledged(std::uint32_t stream) {
  const Outgoing* out = streams_.outgoing(stream);
  if (!out) return std::nullopt;
  return out->acknowledged();
}

void ServedSession::tell(std::string_view kind, std::string_view message,
                         std::optional<base::Json> detail) {
  notices_.push_back({++notices_made_, std::string(kind), std::string(base::cut(message, 1024)),
                      std::move(detail)});
  if (notices_.size() > kNoticesMax) notices_.pop_front();
}

std::optional<Message> ServedSession::next() {
  if (!linked_) return std::nullopt;
  if (std::exchange(resume_due_, false)) return Message(Resume{.receiving = streams_.state()});
  if (!peer_resumed_) return std::nullopt;
  if (!refusals_.empty()) {
    Reply refused = std::move(refusals_.front());
    refusals_.pop_front();
    return Message(std::move(refused));
  }
  if (auto reply = next_reply()) return Message(*std::move(reply));
  if (auto notice = next_notice()) return Message(*std::move(notice));
  // A download begins with the reply or after it.
  return streams_.next([this](std::uint32_t id) {
    const auto found = work_.find(id);
    return found == work_.end() || found->second.sent;
  });
}

std::optional<Reply> ServedSession::next_reply() {
  if (replies_due_.empty()) return std::nullopt;
  const std::uint32_t id = replies_due_.front();
  replies_due_.pop_front();
  Work& work = work_.at(id);
  Reply reply = *work.reply;
  work.sent = work.sent_here = true;
  work.whole = false;
  if (Outgoing* download = streams_.outgoing(id); download && download->may_begin()) {
    Data first = download->next(streams_.next_chunk());
    reply.payload = std::move(first.payload);
    reply.end = work.whole = first.end;
  }
  if (!work.seq && work.whole) streams_.forget_outgoing(id);
  forget_if_over(id);
  return reply;
}

std::optional<Notice> ServedSession::next_notice() {
  for (const Notice& notice : notices_) {
    if (notice.number <= notices_sent_) continue;
    notices_sent_ = notice.number;
    return notice;
  }
  return std::nullopt;
}

// Downloads that were sent whole are kept with their replies, but over for whoever has these.
std::size_t ServedSession::streams_in_use() const {
  const auto over = std::ranges::count_if(
      work_, [this](const auto& one) { return one.second.whole && streams_.knows(one.first); });
  return streams_.size() - static_cast<std::size_t>(over);
}

std::size_t ServedSession::unanswered() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(work_, [](const auto& one) { return !one.second.reply; }));
}

}  // namespace wire
