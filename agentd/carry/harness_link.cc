#include "agentd/carry/harness_link.h"

#include <utility>

namespace agentd {
namespace {

constexpr std::size_t kPieceBytes = 64u << 10;

}  // namespace

aio::Task<base::Result<std::optional<Carried>>> HarnessLink::read() {
  for (;;) {
    CO_TRY(const auto frame, reader_.next_bytes());
    if (frame) co_return Carried{frame->type, frame->stream, std::string(frame->bytes)};
    // Most links are silent most of the time: those hold no memory to read into.
    if (!co_await stream_->wait_readable()) co_return std::nullopt;
    const auto piece = std::make_unique_for_overwrite<char[]>(kPieceBytes);
    const auto got = co_await stream_->read(piece.get(), kPieceBytes);
    if (!got || *got == 0) co_return std::nullopt;
    reader_.add({piece.get(), *got});
  }
}

aio::Task<> HarnessLink::speak(base::Milliseconds hang_up_within) {
  while (const auto frame = co_await outbox.take())
    if (!co_await stream_->write(*frame)) outbox.close();
  stream_->close_write();
  co_await aio::sleep_for(hang_up_within);
}

}  // namespace agentd
