#include "agentd/door/accept.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "libs/aio/loop.h"
#include "libs/aio/stream.h"

namespace agentd {
namespace {

constexpr base::Milliseconds kWithoutDescriptors{50};

}  // namespace

aio::Task<> accept_all(aio::Executor executor, base::Fd listener,
                       std::function<void(base::Fd connection)> admit) {
  const auto waiting = aio::Stream::over(std::move(executor), std::move(listener));
  while (co_await waiting->wait_readable()) {
    base::Fd connection(
        ::accept4(waiting->read_descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection) {
      admit(std::move(connection));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      co_await aio::sleep_for(kWithoutDescriptors);  // The next try must not spin.
    }
  }
}

}  // namespace agentd
