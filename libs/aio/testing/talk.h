#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "libs/aio/loop.h"
#include "libs/aio/stream.h"

// A raw peer for tests of servers: what it sends and reads is exactly what is on the wire.
namespace aio::testing {

inline constexpr base::Milliseconds kPatience{60'000};

inline Task<std::shared_ptr<Stream>> dial(int port) {
  auto stream = co_await connect("127.0.0.1", port, kPatience);
  co_return stream ? *stream : nullptr;
}

inline Task<bool> say(std::shared_ptr<Stream> stream, std::string text) {
  co_return (co_await stream->write(text)).ok();
}

inline Task<std::string> hear(std::shared_ptr<Stream> stream, std::string until) {
  std::string heard;
  char piece[4096];
  while (until.empty() || heard.find(until) == std::string::npos) {
    const auto got = co_await stream->read(piece, sizeof piece);
    if (!got) co_return heard + "<broken>";
    if (*got == 0) co_return heard + "<end>";
    heard.append(piece, *got);
  }
  co_return heard;
}

// What arrives until `mark` was seen; "<end>" or "<broken>" is added when the connection ended
// first, "<nothing more>" when nothing came.
inline Task<std::string> hear_until(std::shared_ptr<Stream> stream, std::string mark) {
  auto heard = co_await within(hear(std::move(stream), std::move(mark)), kPatience);
  co_return heard ? *heard : "<nothing more>";
}
inline Task<std::string> hear_all(std::shared_ptr<Stream> stream) {
  return hear_until(std::move(stream), "");
}

// Says `text` on a connection of its own and expects `expected` in what comes until its end.
inline Task<> say_and_hear(int port, std::string text, std::string expected) {
  auto peer = co_await dial(port);
  co_await say(peer, text);
  EXPECT_THAT(co_await hear_all(peer), ::testing::HasSubstr(expected));
}

}  // namespace aio::testing
