#include "libs/wire/client/pump.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace wire {
namespace {

constexpr pollfd kNothing{.fd = -1, .events = 0, .revents = 0};

bool is_for_later(int problem) {
  return problem == EAGAIN || problem == EWOULDBLOCK || problem == EINTR;
}

}  // namespace

pollfd Source::wants(const ClientSession& session) const {
  if (done_ || session.room(stream_) == 0) return kNothing;
  return {.fd = descriptor_, .events = POLLIN, .revents = 0};
}

void Source::work(ClientSession& session, short revents) {
  if (done_ || revents == 0) return;
  std::array<char, kReadBytes> buffer;
  const auto count =
      ::read(descriptor_, buffer.data(), std::min(session.room(stream_), buffer.size()));
  if (count > 0) {
    session.append(stream_, {buffer.data(), static_cast<std::size_t>(count)});
    bytes_ += count;
    return;
  }
  if (count < 0 && is_for_later(errno)) return;
  if (count < 0) problem_ = errno;
  session.end(stream_);
  done_ = true;
}

pollfd Sink::wants(ClientSession& session) {
  look(session);
  if (done_) return kNothing;
  // Without events a poll tells that nobody reads any more.
  const bool waits = written_ < held_.size();
  return {.fd = descriptor_, .events = static_cast<short>(waits ? POLLOUT : 0), .revents = 0};
}

void Sink::work(ClientSession& session, short revents) {
  if (done_) return;
  if (written_ == held_.size() && (revents & (POLLERR | POLLNVAL)) != 0)
    return give_up(session, EPIPE);
  look(session);
  pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
  while (written_ < held_.size() && ::poll(&room, 1, 0) > 0) {
    if (!write_some()) return give_up(session, errno);
    look(session);
  }
}

// Takes the next piece once the one before was written.
void Sink::look(ClientSession& session) {
  while (!done_ && written_ == held_.size()) {
    if (ended_) {
      done_ = true;
      failure_ = std::move(failure_behind_);
      return;
    }
    auto piece = session.take(stream_);
    if (!piece) return;
    ended_ = piece->end;
    failure_behind_ = std::move(piece->error);
    held_ = change_ ? change_(*std::move(piece)) : std::move(piece->bytes);
    written_ = 0;
  }
}

// False: it cannot be written to, and errno says why.
bool Sink::write_some() {
  const auto count =
      ::write(descriptor_, held_.data() + written_, std::min(held_.size() - written_, kWriteBytes));
  if (count < 0) return is_for_later(errno);
  written_ += static_cast<std::size_t>(count);
  bytes_ += count;
  return true;
}

void Sink::give_up(ClientSession& session, int problem) {
  problem_ = problem;
  done_ = true;
  held_.clear();
  session.stop(stream_);
}

}  // namespace wire
