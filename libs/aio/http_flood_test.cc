// More connections than a server has places or descriptors for, most of which never finish a
// request.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/aio/http_server.h"
#include "libs/aio/testing/talk.h"
#include "libs/base/descriptors.h"

namespace aio {
namespace {

using testing::dial;
using ::testing::HasSubstr;
using testing::hear_all;
using testing::hear_until;
using testing::say;
using Streams = std::vector<std::shared_ptr<Stream>>;

// GET /stay is answered in two halves, the second when the peer has left; anything else at once.
Task<> answer(std::shared_ptr<HttpExchange> exchange) {
  if (exchange->head().path() == "/stay") {
    EXPECT_TRUE(co_await exchange->begin(200, {}));
    EXPECT_TRUE(co_await exchange->write("staying"));
    co_await exchange->wait_for_disconnect();
  } else {
    EXPECT_TRUE(co_await exchange->reply({.body = "answered"}));
  }
}

struct Site {
  explicit Site(HttpLimits limits) : server(loop.executor(), answer, limits) {
    port = *server.listen("127.0.0.1", 0);
  }
  Loop loop;
  int port = 0;
  HttpServer server;
};

Task<std::shared_ptr<Stream>> peer_after(Site& site, std::string said) {
  auto peer = co_await dial(site.port);
  EXPECT_TRUE(co_await say(peer, std::move(said)));
  co_return peer;
}

Task<> ask(std::shared_ptr<Stream> peer) {
  co_await say(peer, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(co_await hear_until(peer, "answered"), HasSubstr("200 OK"));
}

Task<Streams> flood(Site& site, std::size_t count) {
  Streams peers;
  while (peers.size() < count)
    peers.push_back(co_await peer_after(site, "GET / HTTP/1.1\r\nHost: ha"));
  co_return peers;
}

Task<int> answers_beside_a_flood(Site& site) {
  const auto busy = co_await peer_after(site, "GET /stay HTTP/1.1\r\n\r\n");
  EXPECT_THAT(co_await hear_until(busy, "staying"), HasSubstr("200 OK"));
  const auto idle = co_await dial(site.port);
  co_await ask(idle);
  const Streams half_sent = co_await flood(site, 200);
  const auto honest = co_await dial(site.port);
  co_await ask(honest);
  co_await ask(honest);
  EXPECT_EQ(co_await hear_all(half_sent.front()), "<broken>") << "it waited longest";
  EXPECT_EQ(co_await hear_all(idle), "<broken>");
  co_await say(half_sent.back(), "lf\r\n\r\n");
  EXPECT_THAT(co_await hear_until(half_sent.back(), "answered"), HasSubstr("200 OK"));
  EXPECT_TRUE(busy->open());
  EXPECT_TRUE(co_await say(busy, "more"));
  co_return 0;
}
TEST(HttpFlood, LetsThoseWhoWaitLongestMakeRoom) {
  Site site({.connections_max = 20});
  site.loop.run(answers_beside_a_flood(site));
}

// Every descriptor but so many is taken while it lives.
class FewDescriptors {
 public:
  FewDescriptors() : before_(base::raise_descriptor_limit().before) {
    base::set_descriptor_limit(200);
    for (;;) {
      base::Fd taken(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!taken) return;
      taken_.push_back(std::move(taken));
    }
  }
  ~FewDescriptors() { base::set_descriptor_limit(before_); }
  void free(std::size_t count) { taken_.resize(taken_.size() - count); }

 private:
  const std::size_t before_;
  std::vector<base::Fd> taken_;
};

Task<int> answers_without_descriptors(Site& site) {
  const Streams half_sent = co_await flood(site, 5);
  FewDescriptors few;
  few.free(1);  // For the one who asks; the server has none for it.
  const auto honest = co_await dial(site.port);
  co_await ask(honest);
  EXPECT_EQ(co_await hear_all(half_sent.front()), "<broken>");
  co_return 0;
}
TEST(HttpFlood, MakesRoomWhenDescriptorsRunOut) {
  Site site({});
  site.loop.run(answers_without_descriptors(site));
}

TEST(HttpLimits, LeaveDescriptorsForTheWork) {
  EXPECT_EQ(limits_within(1'024).connections_max, 256u);
  EXPECT_EQ(limits_within(1'048'576).connections_max, 4'096u);
  EXPECT_EQ(limits_within(0).connections_max, 1u);
}

}  // namespace
}  // namespace aio
