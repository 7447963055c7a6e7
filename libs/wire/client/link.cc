#include "libs/wire/client/link.h"

#include <sys/socket.h>

#include <cerrno>

namespace wire {
namespace {

bool is_for_later() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Link::Link(base::Fd socket) : socket_(std::move(socket)), in_(kReadBytes, '\0') {}

bool Link::send(const std::function<std::optional<Frame>()>& next) {
  while (true) {
    if (!blocked()) {
      const auto frame = next();
      if (!frame) return true;
      out_ = encode(*frame);
      sent_ = 0;
    }
    const auto count =
        ::send(descriptor(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) return is_for_later();
    sent_ += static_cast<std::size_t>(count);
  }
}

base::Result<Link::Received> Link::receive(const std::function<void(Frame)>& hand_on) {
  const auto count = ::recv(descriptor(), in_.data(), in_.size(), MSG_DONTWAIT);
  if (count < 0 && is_for_later()) return Received::kNothing;
  if (count <= 0) return Received::kEnd;
  reader_.add(std::string_view(in_).substr(0, static_cast<std::size_t>(count)));
  while (true) {
    TRY(auto frame, reader_.next());
    if (!frame) return Received::kSome;
    hand_on(*std::move(frame));
  }
}

}  // namespace wire
