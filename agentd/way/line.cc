#include "agentd/way/line.h"

#include <utility>

#include "libs/base/files.h"
#include "libs/base/unix_socket.h"

namespace agentd {
namespace {

constexpr std::size_t kAuthoritiesBytesMax = 1u << 20;

}  // namespace

aio::Task<base::Result<std::shared_ptr<aio::Stream>>> SocketLine::open(base::Milliseconds) {
  CO_TRY(base::Fd socket, base::connect_to(path_));
  co_return aio::Stream::over(executor_, std::move(socket));
}

// A file that is being replaced, or spoilt, leaves those who were believed before.
base::Result<base::Done> SecureLine::follow_authorities() {
  if (authorities_.empty()) {
    if (!tls_) {
      TRY(tls_, aio::TlsClient::with({}));
    }
    return base::Done{};
  }
  auto read = base::read_file(authorities_, kAuthoritiesBytesMax);
  if (!read) return tls_ ? base::Result<base::Done>(base::Done{}) : read.error();
  if (tls_ && *read == believed_) return base::Done{};
  auto made = aio::TlsClient::with({.authorities = *read});
  if (made) {
    tls_ = *std::move(made);
    believed_ = *std::move(read);
  } else if (!tls_) {
    return base::error(base::ErrorCode::kUnavailable, authorities_.string(), ": ",
                       made.error().message);
  }
  return base::Done{};
}

aio::Task<base::Result<std::shared_ptr<aio::Stream>>> SecureLine::open(base::Milliseconds limit) {
  CO_CHECK_OK(follow_authorities());
  const aio::TlsClient tls = *tls_;
  CO_TRY(auto stream, co_await dial(place_, names_, limit));
  co_return co_await tls.secure(std::move(stream), place_.host, limit);
}

}  // namespace agentd
