#include "executor/sessions/call.h"

#include <algorithm>
#include <utility>

namespace executor {

bool Call::reserve(std::size_t reply_bytes) {
  auto* served = links_.session(session_);
  if (!served || served->reserve(request_.id, reply_bytes)) return true;
  fail(wire::failure(wire::FailureCode::kRepliesFull,
                     "there is no room for its reply among those that are not acknowledged"));
  return false;
}

void Call::fail(wire::Failure failure) {
  if (auto* served = links_.session(session_)) served->fail(request_.id, std::move(failure));
  links_.wake();
}

aio::Task<bool> Call::append(std::string bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    auto* served = links_.session(session_);
    if (!served || !served->wants(request_.id) || stop().stop_requested()) co_return false;
    const std::size_t count = std::min(served->room(request_.id), bytes.size() - at);
    if (count == 0) {
      co_await progress_->moved.wait();
      continue;
    }
    served->append(request_.id, std::string_view(bytes).substr(at, count));
    links_.wake();
    at += count;
  }
  co_return true;
}

aio::Task<> Call::until_unwanted() {
  for (;;) {
    auto* served = links_.session(session_);
    if (!served || !served->wants(request_.id) || stop().stop_requested()) co_return;
    co_await progress_->moved.wait();
  }
}

// One wait, and no loop: what loses a race in a loop leaves it by an exception, which costs as much
// as a look at a file.
aio::Task<> Call::until_given_up() {
  if (!given_up()) co_await progress_->given_up.wait();
}

void Call::end(std::optional<wire::Failure> error) {
  if (auto* served = links_.session(session_)) served->end(request_.id, std::move(error));
  links_.wake();
}

std::optional<wire::Piece> Call::take_ready() {
  if (!request_.up) return wire::Piece{.end = true};
  auto* served = links_.session(session_);
  auto piece = served ? served->take(request_.id, wire::kChunkBytes) : std::nullopt;
  if (piece) links_.wake();  // There may be credit to give.
  return piece;
}

aio::Task<std::optional<wire::Piece>> Call::take() {
  for (;;) {
    if (auto piece = take_ready()) {
      if (piece->error) co_return std::nullopt;
      co_return piece;
    }
    if (!links_.session(session_) || stop().stop_requested()) co_return std::nullopt;
    co_await progress_->moved.wait();
  }
}

}  // namespace executor
