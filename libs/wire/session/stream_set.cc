#include "libs/wire/session/stream_set.h"

#include <algorithm>
#include <utility>

namespace wire {

std::size_t StreamSet::held() const {
  std::size_t bytes = 0;
  for (const auto& [id, stream] : outgoing_) bytes += stream.held();
  for (const auto& [id, stream] : incoming_) bytes += stream.held();
  return bytes;
}

std::size_t StreamSet::granted() const {
  std::int64_t bytes = 0;
  for (const auto& [id, stream] : incoming_) bytes += stream.granted();
  return static_cast<std::size_t>(bytes);
}

void StreamSet::open_incoming(std::uint32_t id, std::int64_t limit, bool kept) {
  incoming_.emplace(id, limit);
  if (kept) kept_.insert(id);
}

Outgoing* StreamSet::outgoing(std::uint32_t id) {
  const auto found = outgoing_.find(id);
  return found == outgoing_.end() ? nullptr : &found->second;
}

Incoming* StreamSet::incoming(std::uint32_t id) {
  const auto found = incoming_.find(id);
  return found == incoming_.end() ? nullptr : &found->second;
}

void StreamSet::forget_incoming(std::uint32_t id) {
  incoming_.erase(id);
  kept_.erase(id);
  to_credit_.erase(id);
}

void StreamSet::forget_if_done(std::uint32_t id) {
  const Incoming* stream = incoming(id);
  if (stream && stream->done() && !kept_.contains(id)) forget_incoming(id);
}

std::size_t StreamSet::room(std::uint32_t id) const {
  const auto found = outgoing_.find(id);
  return found == outgoing_.end() ? 0 : found->second.room(stream_allowance(held()));
}

std::optional<Piece> StreamSet::take(std::uint32_t id, std::size_t bytes_max) {
  Incoming* stream = incoming(id);
  if (!stream) return std::nullopt;
  auto piece = stream->take(bytes_max);
  to_credit_.insert(id);
  forget_if_done(id);
  return piece;
}

void StreamSet::stop(std::uint32_t id) {
  if (!incoming_.contains(id)) return;
  forget_incoming(id);
  stops_.insert(id);
}

// A peer that opens it only now has not heard of its stop, or not on this link.
void StreamSet::stop_if_gone(std::uint32_t id) {
  if (!incoming_.contains(id)) stops_.insert(id);
}

base::Result<bool> StreamSet::receive(Data data) {
  const std::uint32_t id = data.stream;
  Incoming* stream = incoming(id);
  if (!stream) return false;
  CHECK_OK(stream->receive(std::move(data)));
  to_credit_.insert(id);
  carried_ = true;
  return true;
}

base::Result<bool> StreamSet::receive(const Credit& credit) {
  Outgoing* stream = outgoing(credit.stream);
  if (!stream) return false;
  CHECK_OK(stream->credit(credit.received, credit.limit, credit.ended));
  if (stream->done()) forget_outgoing(credit.stream);
  return true;
}

bool StreamSet::receive(const Stop& stop) { return outgoing_.erase(stop.stream) > 0; }

void StreamSet::cut() {
  for (auto& [id, stream] : outgoing_) stream.cut();
  stops_.clear();  // The peer learns of them by what is not named on the next link.
  to_credit_.clear();
  if (std::exchange(carried_, false)) chunk_ = kChunkBytesAfterCut;
}

std::size_t StreamSet::next_chunk() {
  carried_ = true;
  return std::exchange(chunk_, std::min(2 * chunk_, kChunkBytes));
}

std::vector<Receiving> StreamSet::state() {
  std::vector<Receiving> rows;
  for (auto& [id, stream] : incoming_) {
    rows.push_back(stream.state(stream_allowance(granted())));
    rows.back().stream = id;
  }
  std::erase_if(incoming_, [this](const auto& one) {
    return one.second.done() && !kept_.contains(one.first);
  });
  return rows;
}

std::optional<Message> StreamSet::next(const std::function<bool(std::uint32_t)>& may_send) {
  if (auto stop = next_stop()) return Message(*stop);
  if (auto credit = next_credit()) return Message(*credit);
  if (auto data = next_data(may_send)) return Message(*std::move(data));
  return std::nullopt;
}

std::optional<Stop> StreamSet::next_stop() {
  if (stops_.empty()) return std::nullopt;
  return Stop{stops_.extract(stops_.begin()).value()};
}

std::optional<Credit> StreamSet::next_credit() {
  while (!to_credit_.empty()) {
    const std::uint32_t id = to_credit_.extract(to_credit_.begin()).value();
    Incoming* stream = incoming(id);
    auto credit = stream ? stream->credit(stream_allowance(granted())) : std::nullopt;
    if (!credit) continue;
    credit->stream = id;
    forget_if_done(id);
    return credit;
  }
  return std::nullopt;
}

std::optional<Data> StreamSet::next_data(const std::function<bool(std::uint32_t)>& may_send) {
  const auto first = outgoing_.upper_bound(last_);
  const auto send = [&](auto from, auto to) -> std::optional<Data> {
    for (auto one = from; one != to; ++one) {
      auto& [id, stream] = *one;
      if (!stream.ready() || !may_send(id)) continue;
      last_ = id;
      Data data = stream.next(next_chunk());
      data.stream = id;
      return data;
    }
    return std::nullopt;
  };
  if (auto data = send(first, outgoing_.end())) return data;
  return send(outgoing_.begin(), first);
}

}  // namespace wire
