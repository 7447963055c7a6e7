#include "local_e2b/control/bookkeeping_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/aio/http_client.h"
#include "libs/aio/http_server.h"
#include "libs/aio/testing/run.h"

namespace local_e2b {
namespace {

using testing::HasSubstr;

struct Site {
  Site()
      : server(loop.executor(), greet),
        host({.pid = 42,
              .envd_version = "0.6.4",
              .ports = {{kEnvdPort, *server.listen("127.0.0.1", 0)}},
              .has_ended = [this] { return ended; }}) {}
  static aio::Task<> greet(std::shared_ptr<aio::HttpExchange> exchange) {
    (void)co_await exchange->reply({.status = 200, .body = "hello"});
  }

  aio::Loop loop;
  bool ended = false;
  aio::HttpServer server;
  BookkeepingHost host;
};

aio::Task<BoxRecord> make(Site& site, std::string id) {
  BoxSpec spec{.id = std::move(id)};
  co_return *co_await site.host.create(std::move(spec));
}

aio::Task<> leads_all_to_one(Site& site) {
  for (const char* id : {"one", "two"}) {
    const BoxRecord box = co_await make(site, id);
    EXPECT_EQ(box.id, id);
    EXPECT_TRUE(box_record_from_json(to_json(box))) << "it outlives the server in its record";
    auto stream = co_await site.host.dial(box, kEnvdPort);
    if (!stream) co_return ADD_FAILURE() << stream.error().message;
    aio::HttpRequest request;
    const auto reply =
        co_await aio::exchange(*stream, std::move(request), base::Milliseconds(60'000));
    EXPECT_EQ(reply->body, "hello");
    EXPECT_EQ((co_await site.host.dial(box, 8080)).error().code, base::ErrorCode::kUnavailable);
    EXPECT_EQ(*co_await site.host.init(box, EnvdInit{}), "0.6.4");
  }
}

TEST(BookkeepingHost, LeadsAllBoxesToOneProcess) { aio::testing::tell(leads_all_to_one); }

aio::Task<> freezes_in_the_books(Site& site) {
  const BoxRecord box = co_await make(site, "one"), other = co_await make(site, "two");
  EXPECT_FALSE(site.host.objection_to_freeze());
  EXPECT_TRUE(co_await site.host.freeze(box));
  EXPECT_TRUE(co_await site.host.frozen(box));
  EXPECT_FALSE(co_await site.host.frozen(other));
  EXPECT_TRUE(co_await site.host.thaw(box));
  EXPECT_FALSE(co_await site.host.frozen(box));
  EXPECT_TRUE(co_await site.host.freeze(other));
  EXPECT_TRUE(co_await site.host.destroy(other));
  EXPECT_FALSE(co_await site.host.frozen(other));
}

TEST(BookkeepingHost, FreezesInTheBooksOnly) { aio::testing::tell(freezes_in_the_books); }

aio::Task<> is_over_with_its_process(Site& site) {
  std::vector<BoxRecord> boxes;
  for (const char* id : {"one", "two"}) boxes.push_back(co_await make(site, id));
  EXPECT_THAT(co_await site.host.dead_of(boxes), testing::IsEmpty());
  site.ended = true;
  EXPECT_THAT(co_await site.host.dead_of(boxes), testing::ElementsAre("one", "two"));
  BoxSpec spec{.id = "three"};
  const auto refused = co_await site.host.create(std::move(spec));
  EXPECT_THAT(refused.error().message, HasSubstr("has ended"));
}

TEST(BookkeepingHost, IsOverWithTheProcessThatAnswers) {
  aio::testing::tell(is_over_with_its_process);
}

}  // namespace
}  // namespace local_e2b
