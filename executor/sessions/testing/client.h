#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/sessions/links.h"
#include "libs/aio/loop.h"
#include "libs/aio/testing/talk.h"
#include "libs/aio/websocket.h"
#include "libs/base/clock.h"
#include "libs/wire/admin.h"
#include "libs/wire/proof.h"
#include "libs/wire/session/client_session.h"

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

// A client and its connection; done when the connection is.
struct Client {
  Client(aio::Executor executor, int port) : port(port), said(std::move(executor)) {}

  static aio::Task<> carry(Client& client) {
    auto socket = co_await aio::WebSocket::open(
        co_await aio::testing::dial(client.port), "localhost", kSessionPath, {},
        {.subprotocol = kSessionSubprotocol, .message_bytes_max = wire::kFrameBytesMax});
    EXPECT_TRUE(socket);
    if (!socket) co_return;
    client.session.dial(attach_token(), wire::new_nonce(), base::SystemClock().now());
    client.socket = *socket;
    co_await aio::race(read(client), write(client));
    client.session.cut();
    client.socket.reset();
  }
  static aio::Task<> read(Client& client) {
    for (;;) {
      const auto bytes = co_await client.socket->read();
      if (!bytes) co_return;
      client.session.receive(**wire::decode(*bytes), base::SystemClock().now());
      for (auto& event : client.session.take_events()) client.events.push_back(std::move(event));
      client.said.notify_all();
      if (client.session.over()) co_return;
    }
  }
  static aio::Task<> write(Client& client) {
    for (;;) {
      while (const auto frame = client.session.next())
        if (!co_await client.socket->write(wire::encode(*frame))) co_return;
      co_await client.said.wait();
    }
  }
  template <typename Event>
  const Event* find() const {
    for (const auto& event : events)
      if (const auto* one = std::get_if<Event>(&event)) return one;
    return nullptr;
  }
  template <typename Event>
  static aio::Task<> wait_for(Client& client) {
    while (!client.find<Event>()) co_await client.said.wait();
  }

  int port;
  aio::Condition said;
  wire::ClientSession session{{.name = "test"}};
  std::shared_ptr<aio::WebSocket> socket;
  std::vector<wire::ClientEvent> events;
};

}  // namespace executor::testing
