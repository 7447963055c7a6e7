#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/aio/loop.h"
#include "libs/aio/stream.h"
#include "libs/base/clock.h"
#include "libs/wire/frames/frame.h"
#include "libs/wire/session/client_session.h"

namespace agentd::testing {

inline constexpr base::Milliseconds kPatience{20'000};

// A harness: a session, and the link that it has just now.
class Harness {
 public:
  explicit Harness(aio::Executor executor,
                   std::optional<wire::SandboxName> sandbox = wire::SandboxName{"team-a", "box"})
      : said(std::move(executor)), session({.name = "test", .sandbox = std::move(sandbox)}) {}

  // Until the link is over.
  static aio::Task<> carry(Harness& harness, std::shared_ptr<aio::Stream> stream,
                           std::optional<std::string> token = std::nullopt) {
    harness.session.dial(token, std::string(32, '0'), base::SystemClock().now());
    harness.stream = stream;
    co_await aio::race(read(harness, stream), write(harness, stream));
    if (harness.stream == stream) harness.session.cut();
    stream->close();
    harness.said.notify_all();
  }

  template <typename Event>
  std::vector<Event> all() const {
    std::vector<Event> found;
    for (const auto& event : events)
      if (const auto* one = std::get_if<Event>(&event)) found.push_back(*one);
    return found;
  }
  template <typename Event>
  static aio::Task<bool> wait(Harness& harness, std::size_t count) {
    while (harness.all<Event>().size() < count) co_await harness.said.wait();
    co_return true;
  }
  // Whether so many such events came.
  template <typename Event>
  static aio::Task<bool> heard(Harness& harness, std::size_t count = 1) {
    co_return (co_await aio::within(wait<Event>(harness, count), kPatience)).has_value();
  }
  std::string left() const {  // Why the last link ended; empty: it has not.
    const auto closed = all<wire::Closed>();
    return closed.empty() ? "" : std::string(to_word(closed.back().close.reason));
  }
  // After something was asked for.
  void wake() { said.notify_all(); }

  aio::Condition said;
  wire::ClientSession session;
  std::vector<wire::ClientEvent> events;
  std::shared_ptr<aio::Stream> stream;
  bool stalls = false;  // It reads nothing.

 private:
  static aio::Task<> read(Harness& harness, std::shared_ptr<aio::Stream> stream) {
    wire::FrameReader reader;
    char piece[16u << 10];
    for (;;) {
      while (harness.stalls) co_await harness.said.wait();
      const auto got = co_await stream->read(piece, sizeof piece);
      if (!got || *got == 0) co_return;
      reader.add({piece, *got});
      for (auto frame = reader.next(); frame && *frame; frame = reader.next()) {
        if (harness.stream != stream) continue;  // It has a newer link.
        harness.session.receive(**std::move(frame), base::SystemClock().now());
      }
      for (auto& event : harness.session.take_events()) harness.events.push_back(std::move(event));
      harness.said.notify_all();
    }
  }
  static aio::Task<> write(Harness& harness, std::shared_ptr<aio::Stream> stream) {
    for (;;) {
      while (harness.stream == stream) {
        const auto frame = harness.session.next();
        if (!frame) break;
        if (!co_await stream->write(wire::encode(*frame))) co_return;
      }
      co_await harness.said.wait();
    }
  }
};

}  // namespace agentd::testing
