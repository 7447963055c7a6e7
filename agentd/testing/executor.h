#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agentd/way/way.h"
#include "libs/aio/http_server.h"
#include "libs/aio/loop.h"
#include "libs/aio/websocket.h"
#include "libs/base/clock.h"
#include "libs/wire/frames/operations.h"
#include "libs/wire/known_time.h"
#include "libs/wire/session/endpoint.h"
#include "libs/wire/web/web_links.h"

namespace agentd::testing {

// The byte at each offset of a stream, so that one that is missing or doubled is seen.
inline std::string pattern(std::int64_t from, std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<char>(((static_cast<std::uint64_t>(from) + i) * 2654435761u) >> 13);
  return bytes;
}

// An executor's port with the real sessions behind it, and four operations: `echo` says its
// arguments again, `add` (mutating) adds to `added`, `pattern` sends so many bytes, `silence` and
// what waits for others never have a reply.
class Executor {
 public:
  Executor(aio::Executor executor, wire::Identity identity)
      : identity(std::move(identity)),
        host(executor,
             wire::HostSettings{.instance = "instance-1",
                                .attach_key = key(),
                                .cwd = "/work",
                                .workspace_root = "/work",
                                .features = {"files"}},
             this->identity, clock, time_, [this](const wire::HostEvent& event) { handle(event); }),
        server_(executor, [this](auto exchange) { return serve(std::move(exchange)); }),
        tasks_(executor) {
    port = *server_.listen("127.0.0.1", 0);
    tasks_.spawn(host.tend());
  }

  std::string key() const {
    return wire::derive_key("fleet", wire::TokenKind::kAttach, identity.uid, identity.epoch);
  }
  Way way(wire::Ceiling ceiling = wire::Ceiling::kDangerFullAccess,
          std::string subject = "harness") const {
    const base::WallTime wall = clock.wall();
    const wire::Claims claims{.uid = identity.uid,
                              .epoch = identity.epoch,
                              .run = identity.run,
                              .ceiling = ceiling,
                              .subject = std::move(subject),
                              .issued = wall,
                              .expires = wall + std::chrono::minutes(15)};
    return {.uid = identity.uid,
            .epoch = identity.epoch,
            .incarnation = identity.incarnation,
            .run = identity.run,
            .url = "http://127.0.0.1:" + std::to_string(port),
            .token = wire::sign(claims, key()),
            .expires = claims.expires};
  }

  void cut() {  // All links, without a word.
    for (const auto& socket : sockets_) socket->reset();
  }
  void resumed(const wire::Identity& as) {
    identity = as;
    host.resumed({identity});
  }
  void quiesce() { host.quiesce(); }
  std::size_t links() const { return sockets_.size(); }

  base::SystemClock clock;
  wire::Identity identity;
  int port = 0;
  std::int64_t added = 0;
  int dialled = 0;  // Links in all.
  int silent = 0;   // Requests that have no reply.

 private:
  struct Sent {
    std::string session;
    std::uint32_t stream;
    std::int64_t at, bytes;
  };

  aio::Task<> serve(std::shared_ptr<aio::HttpExchange> exchange) {
    auto socket = co_await aio::WebSocket::accept(
        std::move(exchange),
        {.subprotocol = wire::kSessionSubprotocol, .message_bytes_max = wire::kFrameBytesMax});
    if (!socket) co_return;
    ++dialled;
    sockets_.insert(*socket);
    co_await host.carry(*socket);
    sockets_.erase(*socket);
  }
  void handle(const wire::HostEvent& event) {
    if (const auto* what = std::get_if<wire::SessionEvent>(&event.what))
      if (const auto* asked = std::get_if<wire::Asked>(what)) answer(event.session, asked->request);
    for (Sent& one : sending_) send(one);
    std::erase_if(sending_, [](const Sent& one) { return one.at == one.bytes; });
  }
  void answer(const std::string& name, const wire::Request& request) {
    wire::ServedSession* session = host.session(name);
    if (!session) return;
    if (request.op == "add") {
      added += base::integer_at(request.args, "count").value_or(0);
      session->reply(request.id, {{"added", added}});
    } else if (request.op == "silence" || wire::only_waits(request)) {
      ++silent;
    } else if (request.op == "pattern") {
      session->reply(request.id, base::Json::object());
      sending_.push_back(
          {name, request.id, 0, base::integer_at(request.args, "bytes").value_or(0)});
    } else {
      session->reply(request.id, request.args);
    }
  }
  void send(Sent& one) {
    wire::ServedSession* session = host.session(one.session);
    if (!session || !session->wants(one.stream)) {
      one.at = one.bytes;
      return;
    }
    while (one.at < one.bytes) {
      const auto room = std::min<std::int64_t>(static_cast<std::int64_t>(session->room(one.stream)),
                                               one.bytes - one.at);
      if (room == 0) return;
      session->append(one.stream, pattern(one.at, static_cast<std::size_t>(room)));
      one.at += room;
    }
    session->end(one.stream);
  }

  wire::KnownTime time_{clock};

 public:
  wire::WebLinks host;

 private:
  std::set<std::shared_ptr<aio::WebSocket>> sockets_;
  std::vector<Sent> sending_;
  aio::HttpServer server_;
  aio::TaskGroup tasks_;
};

}  // namespace agentd::testing
