#include "libs/aio/http_connections.h"

namespace aio {

bool OpenConnections::make_room() { return places_.size() < max_ || close_longest_waiting(); }

bool OpenConnections::close_longest_waiting() {
  if (waiting_.empty()) return false;
  Stream& longest = *waiting_.front();
  // Reset, so that the kernel keeps nothing of it either.
  if (const auto stream = places_.at(&longest).stream.lock()) stream->reset();
  remove(longest);
  return true;
}

void OpenConnections::add(const std::shared_ptr<Stream>& stream) {
  places_.emplace(stream.get(), Place{stream, std::nullopt});
}

void OpenConnections::waits(Stream& stream) {
  const auto place = places_.find(&stream);
  if (place == places_.end() || place->second.waiting) return;
  place->second.waiting = waiting_.insert(waiting_.end(), &stream);
}

void OpenConnections::works(Stream& stream) {
  const auto place = places_.find(&stream);
  if (place == places_.end() || !place->second.waiting) return;
  waiting_.erase(*place->second.waiting);
  place->second.waiting.reset();
}

void OpenConnections::remove(Stream& stream) {
  works(stream);
  places_.erase(&stream);
}

void OpenConnections::reset_all() {
  for (const auto& [key, place] : places_)
    if (const auto stream = place.stream.lock()) stream->reset();
}

}  // namespace aio
