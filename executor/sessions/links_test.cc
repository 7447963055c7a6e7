#include <gtest/gtest.h>

#include "executor/sessions/testing/client.h"
#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"
#include "libs/wire/session/endpoint.h"
#include "libs/wire/web/web_links.h"

namespace executor {
namespace {

using aio::testing::dial;
using aio::testing::kPatience;
using aio::testing::tell;
using testing::Client;

// An executor's port, where each request is answered with its own arguments.
struct Site {
  Site()
      : links(loop.executor(),
              {.instance = "i-1",
               .attach_key = testing::attach_key(),
               .cwd = "/w",
               .workspace_root = "/w"},
              testing::identity(), clock, time,
              [this](wire::HostEvent event) { answer(std::move(event)); }),
        server(loop.executor(), [this](auto exchange) { return links.serve(exchange); }) {
    port = *server.listen("127.0.0.1", 0);
  }
  void answer(wire::HostEvent event) {
    if (std::holds_alternative<wire::SessionEnd>(event.what)) ++ended;
    const auto* what = std::get_if<wire::SessionEvent>(&event.what);
    const auto* asked = what ? std::get_if<wire::Asked>(what) : nullptr;
    if (!asked) return;
    auto& session = *links.session(event.session);
    if (asked->request.down)
      session.reply_whole(asked->request.id, asked->request.args, std::string(900'000, 'x'));
    else
      session.reply(asked->request.id, asked->request.args);
  }

  aio::Loop loop;
  base::SystemClock clock;
  wire::KnownTime time{clock};
  wire::WebLinks links;
  aio::HttpServer server;
  int port = 0;
  int ended = 0;
};

aio::Task<> ask_and_hear(Site& site) {
  Client client(site.loop.executor(), site.port);
  const auto id = *client.session.ask({.op = "echo", .args = {{"n", 5}}, .down = true});
  co_await aio::race(Client::carry(client), Client::wait_for<wire::Answered>(client));
  const auto* answered = client.find<wire::Answered>();
  EXPECT_TRUE(answered && answered->id == id && answered->ok == (base::Json{{"n", 5}}));
}
TEST(Links, CarryARequestAndItsReply) { tell(ask_and_hear); }

aio::Task<> go_on(Site& site) {
  Client client(site.loop.executor(), site.port);
  co_await aio::race(Client::carry(client), Client::wait_for<wire::Welcomed>(client));
  const auto first = client.find<wire::Welcomed>()->welcome;
  client.events.clear();
  EXPECT_TRUE(client.session.ask({.op = "echo"}));
  co_await aio::race(Client::carry(client), Client::wait_for<wire::Answered>(client));
  EXPECT_TRUE(client.find<wire::Welcomed>()->welcome.resumed);
  EXPECT_EQ(client.find<wire::Welcomed>()->welcome.session, first.session);
}
TEST(Links, ASessionGoesOnOverAnotherConnection) { tell(go_on); }

aio::Task<> quiesce(Site& site) {
  Client client(site.loop.executor(), site.port);
  aio::TaskGroup tasks(site.loop.executor());
  tasks.spawn(Client::carry(client));
  co_await Client::wait_for<wire::Welcomed>(client);
  site.links.quiesce();
  co_await Client::wait_for<wire::Closed>(client);
  EXPECT_EQ(client.find<wire::Closed>()->close.reason, wire::CloseReason::kQuiesce);
  co_await tasks.wait();
  site.links.resumed({{"uid-1", 3, 5, 7}});
  EXPECT_EQ(site.ended, 1) << "its incarnation has moved";
}
TEST(Links, AreClosedForAPauseAndTellWhatEnds) { tell(quiesce); }

aio::Task<> talk_nonsense(Site& site) {
  const auto socket = co_await aio::WebSocket::open(
      co_await dial(site.port), "localhost", wire::kSessionPath, {},
      {.subprotocol = wire::kSessionSubprotocol, .message_bytes_max = wire::kFrameBytesMax});
  EXPECT_TRUE(co_await (*socket)->write("this is no frame"));
  const auto last = co_await aio::within((*socket)->read(), kPatience);
  EXPECT_TRUE(last && *last);
  const auto message = wire::to_message(**wire::decode(**last));
  EXPECT_EQ(std::get<wire::Close>(*message).reason, wire::CloseReason::kProtocol);
  const auto end = co_await aio::within((*socket)->read(), kPatience);
  EXPECT_TRUE(end && !*end);
}
TEST(Links, SayWhyTheyAreClosedAndEnd) { tell(talk_nonsense); }

}  // namespace
}  // namespace executor
