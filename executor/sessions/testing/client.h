#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libs/aio/loop.h"
#include "libs/aio/testing/talk.h"
#include "libs/aio/websocket.h"
#include "libs/base/clock.h"
#include "libs/wire/admin.h"
#include "libs/wire/proof.h"
#include "libs/wire/session/client_session.h"
#include "libs/wire/session/endpoint.h"
#include "libs/wire/web/web_links.h"

namespace executor::testing {

inline wire::Identity identity() { return {"uid-1", 3, 4, 7}; }
inline std::string attach_key() {
  return wire::derive_key("fleet", wire::TokenKind::kAttach, "uid-1", 3);
}
inline wire::SplitToken attach_token(wire::Ceiling ceiling = wire::Ceiling::kDangerFullAccess) {
  const base::WallTime now = base::SystemClock().wall();
  return *wire::split_token(wire::sign({.uid = "uid-1",
                                        .epoch = 3,
                                        .run = 7,
                                        .ceiling = ceiling,
                                        .issued = now,
                                        .expires = now + std::chrono::minutes(15)},
                                       attach_key()));
}

struct Answer {
  std::optional<base::Json> ok;
  std::optional<wire::Failure> failure;
  std::string download;

  template <typename Args>
  typename Args::Ok as() const {
    EXPECT_TRUE(ok) << (failure ? failure->message : "no answer");
    if (!ok) return {};
    auto read = wire::from_json<typename Args::Ok>(*ok);
    EXPECT_TRUE(read) << base::to_text(*ok);
    if (!read) return {};
    return *std::move(read);
  }
  std::optional<wire::FailureCode> code() const {
    if (!failure) return std::nullopt;
    return failure->code;
  }
};

// All that came of a stream: bytes that were skipped are not among them.
struct Streamed {
  std::string bytes;
  std::int64_t skipped = 0;
  bool ended = false;
  std::optional<wire::Failure> error;
};

// How a request is asked, beside its arguments.
struct Asking {
  bool mutating = false;
  std::optional<std::string> upload = std::nullopt;
  bool download = false;
  std::vector<std::uint32_t> to_client = {}, to_server = {};
  std::optional<wire::Ceiling> mode = std::nullopt;
};

// Breaks a connection each time when so many bytes have passed.
inline std::function<bool(std::size_t)> after_each(std::size_t bytes) {
  return [bytes, passed = std::size_t{0}](std::size_t size) mutable {
    passed += size;
    if (passed < bytes) return false;
    passed = 0;
    return true;
  };
}

// A client of an executor's sessions, over one connection after another.
struct Client {
  Client(aio::Executor executor, int port, std::int64_t lease_seconds = 300)
      : port(port),
        said(std::move(executor)),
        session({.name = "test", .lease_seconds = lease_seconds}) {}

  // A connection; done when that is.
  static aio::Task<> carry(Client& client) {
    auto socket = co_await aio::WebSocket::open(
        co_await aio::testing::dial(client.port), "localhost", wire::kSessionPath, {},
        {.subprotocol = wire::kSessionSubprotocol, .message_bytes_max = wire::kFrameBytesMax});
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    client.session.dial(attach_token(client.ceiling), wire::new_nonce(), base::SystemClock().now());
    client.socket = *socket;
    co_await aio::race(read(client), write(client));
    client.session.cut();
    client.socket.reset();
    client.said.notify_all();
  }
  // The next one each time.
  static aio::Task<> stay(Client& client) {
    for (; !client.closed; ++client.cuts) co_await carry(client);
  }
  static aio::Task<> read(Client& client) {
    for (;;) {
      const auto bytes = co_await client.socket->read();
      if (!bytes || client.cut(bytes->size())) co_return;
      client.session.receive(**wire::decode(*bytes), base::SystemClock().now());
      client.take_events();
      if (client.session.over()) co_return;
    }
  }
  static aio::Task<> write(Client& client) {
    for (;;) {
      while (const auto frame = client.session.next()) {
        const std::string bytes = wire::encode(*frame);
        if (client.cut(bytes.size())) co_return;
        if (!co_await client.socket->write(bytes)) co_return;
      }
      co_await client.said.wait();
    }
  }
  void take_events() {
    for (auto& event : session.take_events()) {
      if (const auto* answered = std::get_if<wire::Answered>(&event))
        answers[answered->id].ok = answered->ok;
      if (const auto* failed = std::get_if<wire::Failed>(&event))
        answers[failed->id].failure = failed->failure;
      if (std::holds_alternative<wire::Closed>(event)) closed = true;
      events.push_back(std::move(event));
    }
    said.notify_all();
  }
  template <typename Event>
  const Event* find() const {
    for (const auto& event : events)
      if (const auto* one = std::get_if<Event>(&event)) return one;
    return nullptr;
  }
  template <typename Event>
  std::size_t count() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        events, [](const auto& event) { return std::holds_alternative<Event>(event); }));
  }
  template <typename Event>
  static aio::Task<> wait_for(Client& client) {
    while (!client.find<Event>()) co_await client.said.wait();
  }

  template <typename Args>
  std::uint32_t begin(const Args& args, const Asking& how = {}) {
    const auto id = session.ask({.op = std::string(Args::kOp),
                                 .args = wire::to_json(args),
                                 .mutating = how.mutating,
                                 .up = how.upload.has_value(),
                                 .down = how.download,
                                 .to_client = how.to_client,
                                 .to_server = how.to_server,
                                 .permission_mode = how.mode});
    EXPECT_TRUE(id) << (id ? "" : id.error().message);
    said.notify_all();
    return id ? *id : 0;
  }
  // Until it is answered.
  static aio::Task<Answer> answer(Client& client, std::uint32_t id) {
    while (!client.answers.contains(id)) co_await client.said.wait();
    co_return client.answers[id];
  }
  // Asks, uploads, and reads to the end, over as many connections as it takes.
  template <typename Args>
  static aio::Task<Answer> ask(Client& client, Args args, Asking how = {}) {
    const std::uint32_t id = client.begin(args, how);
    if (how.upload) co_await put(client, id, *how.upload, true);
    Answer answer = co_await Client::answer(client, id);
    if (!how.download || answer.failure) co_return answer;
    const Streamed streamed = co_await all_of(client, id);
    answer.download = streamed.bytes;
    if (streamed.error) answer.failure = streamed.error;
    co_return answer;
  }
  // Of a stream, as room is made; false when it is wanted no more.
  static aio::Task<bool> put(Client& client, std::uint32_t stream, std::string bytes, bool end) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const std::size_t room = std::min(client.session.room(stream), bytes.size() - sent);
      client.session.append(stream, std::string_view(bytes).substr(sent, room));
      sent += room;
      client.said.notify_all();
      if (client.does_not_want(stream)) co_return false;
      if (room == 0) co_await client.said.wait();
    }
    if (end) client.session.end(stream);
    client.said.notify_all();
    co_return true;
  }
  bool does_not_want(std::uint32_t stream) const {
    if (answers.contains(stream)) return true;  // Its own upload.
    return std::ranges::any_of(events, [stream](const auto& event) {
      const auto* unwanted = std::get_if<wire::StreamUnwanted>(&event);
      return unwanted && unwanted->stream == stream;
    });
  }
  // What comes of a stream until `enough` of it is there, or its end.
  static aio::Task<> take(Client& client, std::uint32_t stream, Streamed& streamed,
                          std::size_t enough) {
    while (!streamed.ended && streamed.bytes.size() < enough) {
      const auto piece = client.session.take(stream);
      client.said.notify_all();  // There may be credit to give.
      if (!piece) {
        co_await client.said.wait();
        continue;
      }
      const auto place = static_cast<std::int64_t>(streamed.bytes.size()) + streamed.skipped;
      streamed.skipped += piece->offset - place;
      streamed.bytes += piece->bytes;
      streamed.ended = piece->end;
      streamed.error = piece->error;
    }
  }
  static aio::Task<Streamed> all_of(Client& client, std::uint32_t stream) {
    Streamed streamed;
    co_await take(client, stream, streamed, SIZE_MAX);
    co_return streamed;
  }

  int port;
  wire::Ceiling ceiling = wire::Ceiling::kDangerFullAccess;
  // Asked before each frame, with its size: whether the connection breaks instead.
  std::function<bool(std::size_t)> cut = [](std::size_t) { return false; };
  aio::Condition said;
  wire::ClientSession session;
  std::shared_ptr<aio::WebSocket> socket;
  std::vector<wire::ClientEvent> events;
  std::map<std::uint32_t, Answer> answers;
  bool closed = false;
  int cuts = 0;
};

}  // namespace executor::testing
