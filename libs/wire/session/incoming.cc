#include "libs/wire/session/incoming.h"

#include <algorithm>
#include <utility>

namespace wire {
namespace {

constexpr std::size_t kPieceBytes = 64u << 10;  // Smaller ones are put together.

base::Error broken(std::string_view how) {
  return base::error(base::ErrorCode::kInvalid, "a stream ", how);
}

}  // namespace

base::Result<base::Done> Incoming::receive(Data data) {
  if (data.dropped) {
    if (data.offset > received_ && ended_) return broken("goes on behind its end");
    if (data.offset > received_) dropped_ = true;
    received_ = std::max(received_, data.offset);
    return base::Done{};
  }
  const auto end = data.offset + static_cast<std::int64_t>(data.payload.size());
  if (data.offset > received_) return broken("has a gap");
  if (end > received_ && ended_) return broken("goes on behind its end");
  if (end > received_ && end > limit_) return broken("goes beyond its credit");
  if (data.end && end < received_) return broken("ends before what came of it");
  if (end > received_) {
    std::string fresh = std::move(data.payload);
    fresh.erase(0, static_cast<std::size_t>(received_ - data.offset));
    held_ += fresh.size();
    if (!pieces_.empty() && pieces_.back().bytes.size() < kPieceBytes && continues(pieces_.back()))
      pieces_.back().bytes += fresh;
    else
      pieces_.push_back({received_, std::move(fresh)});
    received_ = end;
  }
  if (data.end && !ended_) {
    ended_ = true;
    error_ = std::move(data.error);
  }
  return base::Done{};
}

bool Incoming::continues(const Piece& piece) const {
  return piece.offset + static_cast<std::int64_t>(piece.bytes.size()) == received_;
}

std::optional<Piece> Incoming::take(std::size_t bytes_max) {
  if (end_taken_) return std::nullopt;
  Piece piece{.offset = received_};
  if (!pieces_.empty()) {
    Piece& first = pieces_.front();
    piece.offset = first.offset;
    if (first.bytes.size() <= bytes_max) {
      piece.bytes = std::move(first.bytes);
      pieces_.pop_front();
    } else {
      piece.bytes = first.bytes.substr(0, bytes_max);
      first.bytes.erase(0, bytes_max);
      first.offset += static_cast<std::int64_t>(bytes_max);
    }
    held_ -= piece.bytes.size();
  } else if (!ended_) {
    taken_ = received_;  // What was let go needs no reader.
    return std::nullopt;
  }
  taken_ =
      pieces_.empty() ? received_ : piece.offset + static_cast<std::int64_t>(piece.bytes.size());
  if (ended_ && pieces_.empty()) {
    end_taken_ = piece.end = true;
    piece.error = error_;
  }
  return piece;
}

void Incoming::break_off(Failure why) {
  if (ended_) return;
  ended_ = true;
  end_told_ = true;  // There is nobody to tell.
  error_ = std::move(why);
}

void Incoming::grant(std::size_t allowance) {
  if (!ended_) limit_ = std::max(limit_, taken_ + static_cast<std::int64_t>(allowance));
  limit_ = std::max(limit_, received_);
}

std::optional<Credit> Incoming::credit(std::size_t allowance) {
  grant(allowance);
  const bool half_used = limit_ - told_limit_ >= static_cast<std::int64_t>(allowance / 2);
  if (end_told_ || !(ended_ || half_used || dropped_)) return std::nullopt;
  const Receiving told = state(allowance);
  return Credit{0, told.received, told.limit, told.ended};
}

Receiving Incoming::state(std::size_t allowance) {
  grant(allowance);
  told_limit_ = limit_;
  end_told_ = ended_;
  dropped_ = false;
  return {0, received_, limit_, ended_};
}

}  // namespace wire
