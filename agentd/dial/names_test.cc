#include "agentd/dial/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <utility>

#include "libs/aio/testing/run.h"

namespace agentd {
namespace {

using ::testing::HasSubstr;

constexpr base::Milliseconds kPatience{20'000}, kInVain{20};

// Names that are looked up for as long as the test wants.
struct Site {
  ~Site() {
    if (!answers.try_wait()) answers.count_down();
  }
  base::Result<Addresses> look_up(const std::string& host) {
    ++looked_up;
    if (!host.ends_with(".alive")) answers.wait();
    if (host == "nobody") return base::error(base::ErrorCode::kUnavailable, "there is no ", host);
    return Addresses{"192.0.2.1", host};
  }
  static aio::Task<> ask(Site& site, std::string host, base::Milliseconds within) {
    site.found.push_back(co_await site.names.find(std::move(host), within));
  }
  std::latch answers{1};
  std::atomic<int> looked_up = 0;
  aio::Loop loop;
  Names names{loop.executor(), [this](const std::string& host) { return look_up(host); }};
  std::vector<base::Result<Addresses>> found;
  aio::TaskGroup tasks{loop.executor()};
};

aio::Task<> ask_the_same(Site& site) {
  for (int i = 0; i < 5; ++i) site.tasks.spawn(Site::ask(site, "host", kPatience));
  site.tasks.spawn(Site::ask(site, "nobody", kPatience));
  const auto late = co_await site.names.find("host", kInVain);
  EXPECT_THAT(late.error().message, HasSubstr("no answer came in time"));
  site.answers.count_down();
  co_await site.tasks.wait();
  EXPECT_EQ(site.looked_up, 2);
  EXPECT_EQ(site.found.size(), 6u);
  int hosts = 0, nobodies = 0;  // In the order in which their threads are done.
  for (const auto& found : site.found) {
    hosts += found.ok() && *found == Addresses{"192.0.2.1", "host"};
    nobodies += !found && found.error().message == "there is no nobody";
  }
  EXPECT_EQ(hosts, 5);
  EXPECT_EQ(nobodies, 1);
  EXPECT_TRUE(co_await site.names.find("host", kPatience));
  EXPECT_EQ(site.looked_up, 3) << "nothing is remembered";
}
TEST(Names, AreLookedUpOnceForAllWhoAsk) { aio::testing::tell(ask_the_same); }

aio::Task<> ask_for_many(Site& site) {
  for (std::size_t i = 0; i < Names::kLookUpsMax; ++i)
    site.tasks.spawn(Site::ask(site, "host-" + std::to_string(i), kPatience));
  const auto more = co_await site.names.find("one more", kPatience);
  EXPECT_THAT(more.error().message, HasSubstr("too many names"));
  EXPECT_TRUE(co_await site.names.find("localhost", kInVain)) << "nobody is asked for that";
  EXPECT_THAT((co_await site.names.find("host-0", kInVain)).error().message, HasSubstr("in time"));
  site.answers.count_down();
  co_await site.tasks.wait();
  EXPECT_EQ(site.looked_up, static_cast<int>(Names::kLookUpsMax));
  EXPECT_TRUE(co_await site.names.find("one more", kPatience));
}
TEST(Names, AreLookedUpSoManyAtOnce) { aio::testing::tell(ask_for_many); }

aio::Task<> ask_past_a_dead_name_server(Site& site) {
  for (std::size_t i = 0; i < Names::kLookUpsMax; ++i)
    site.tasks.spawn(Site::ask(site, "host-" + std::to_string(i) + ".dead", kPatience));
  EXPECT_THAT((co_await site.names.find("more.dead", kPatience)).error().message,
              HasSubstr("too many names"));
  EXPECT_TRUE(co_await site.names.find("host.alive", kPatience));
  EXPECT_TRUE(site.found.empty()) << "the others still wait";
}
TEST(Names, OfADeadNameServerHoldUpNoOthers) { aio::testing::tell(ask_past_a_dead_name_server); }

aio::Task<> ask_in_many_domains(Site& site) {
  EXPECT_TRUE(co_await site.names.find("host.alive", kPatience)) << "and holds no place then";
  for (std::size_t i = 0; i < Names::kDomainsMax; ++i)
    site.tasks.spawn(Site::ask(site, "host.dead-" + std::to_string(i), kPatience));
  co_await aio::sleep_for({});
  EXPECT_THAT((co_await site.names.find("host.alive", kPatience)).error().message,
              HasSubstr("too many names"));
  site.answers.count_down();
  co_await site.tasks.wait();
  EXPECT_EQ(site.found.size(), Names::kDomainsMax);
  for (const auto& found : site.found) EXPECT_TRUE(found);
  EXPECT_TRUE(co_await site.names.find("host.alive", kPatience));
}
TEST(Names, AreLookedUpInSoManyDomainsAtOnce) { aio::testing::tell(ask_in_many_domains); }

// A program that ends while it asks for names: the end of its loop is the end of who asks.
struct Ending {
  struct Thread {
    ~Thread() {
      ++site.threads_ended;
      site.goes_on = true;
      site.goes_on.notify_all();
    }
    Ending& site;
  };
  base::Result<Addresses> look_up(const std::string& host) {
    thread_local const Thread thread{*this};
    ++looked_up;
    if (host.ends_with(".dead")) goes_on.wait(false);
    return Addresses{"192.0.2.1"};
  }
  static aio::Task<> ask(Ending& site, std::string host) {
    static_cast<void>(co_await site.names->find(std::move(host), kPatience));
  }
  std::atomic<int> looked_up = 0, threads_ended = 0;
  std::atomic<bool> goes_on = false;
  aio::Loop loop;
  std::optional<Names> names{std::in_place, loop.executor(),
                             [this](const std::string& host) { return look_up(host); }};
  aio::TaskGroup tasks{loop.executor()};
};

// The threads of the domains on both sides end while a name server in the middle does not answer.
constexpr int kHeldUp = Names::kThreadsEach, kOthers = 2;

aio::Task<> ask_until_the_end(Ending& site) {
  for (const char* host : {"host.before", "host.later"})
    EXPECT_TRUE(co_await site.names->find(host, kPatience));
  for (std::size_t i = 0; i < Names::kLookUpsMax; ++i)
    site.tasks.spawn(Ending::ask(site, "host-" + std::to_string(i) + ".dead"));
  for (int left = 2'000; left > 0 && site.looked_up < kOthers + kHeldUp; --left)
    co_await aio::sleep_for(base::Milliseconds(10));
}
TEST(Names, EndTheirThreadsBeforeTheLoopAndBeginNoMoreLookUps) {
  Ending site;
  aio::testing::run(site.loop, ask_until_the_end(site));
  EXPECT_EQ(site.looked_up, kOthers + kHeldUp);
  site.names.reset();
  EXPECT_EQ(site.threads_ended, kOthers + kHeldUp)
      << "the loop, which they resume on, is still there";
  EXPECT_EQ(site.looked_up, kOthers + kHeldUp) << "the others are asked for in vain";
}

}  // namespace
}  // namespace agentd
