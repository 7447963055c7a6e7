#include "executor/filesystem/turns.h"

#include <gtest/gtest.h>

#include "executor/filesystem/testing/seam.h"

namespace executor {
namespace {

// What happened, in order.
using Story = std::vector<std::string>;

aio::Task<> take(Turns& turns, std::string key, std::string name, Story& story,
                 std::stop_token stop) {
  auto place = turns.join(key);
  if (!place) {
    story.push_back(name + " turned away");
    co_return;
  }
  if (!co_await place->wait(stop)) {
    story.push_back(name + " stopped");
    co_return;
  }
  story.push_back(name + " begins");
  // Gives the others every chance.
  for (int i = 0; i < 20; ++i) co_await aio::sleep_for(base::Milliseconds(0));
  story.push_back(name + " ends");
}

aio::Task<int> one_after_the_other(aio::Loop& loop, Story& story) {
  Turns turns(loop.executor());
  aio::TaskGroup tasks(loop.executor());
  for (const char* name : {"first", "second", "third"})
    tasks.spawn(take(turns, "key", name, story, {}));
  co_await tasks.wait();
  EXPECT_EQ(turns.waiting(), 0u);
  co_return 0;
}

// covers: C2
TEST(Turns, ComeInTheOrderOfArrival) {
  aio::Loop loop;
  Story story;
  loop.run(one_after_the_other(loop, story));
  EXPECT_EQ(story, (Story{"first begins", "first ends", "second begins", "second ends",
                          "third begins", "third ends"}));
  story.clear();
  const Without turns(Mechanism::kTurns);
  loop.run(one_after_the_other(loop, story));
  EXPECT_EQ(story[1], "second begins");
}

aio::Task<int> with_other_keys(aio::Loop& loop, Story& story) {
  Turns turns(loop.executor());
  aio::TaskGroup tasks(loop.executor());
  tasks.spawn(take(turns, "one", "first", story, {}));
  tasks.spawn(take(turns, "other", "second", story, {}));
  co_await tasks.wait();
  co_return 0;
}

TEST(Turns, OfOtherKeysDoNotWait) {
  aio::Loop loop;
  Story story;
  loop.run(with_other_keys(loop, story));
  EXPECT_EQ(story[1], "second begins");
}

aio::Task<int> with_one_stopped(aio::Loop& loop, Story& story) {
  Turns turns(loop.executor());
  std::stop_source stop;
  auto held = turns.join("key");
  EXPECT_TRUE(co_await held->wait({}));
  aio::TaskGroup tasks(loop.executor());
  tasks.spawn(take(turns, "key", "second", story, stop.get_token()));
  tasks.spawn(take(turns, "key", "third", story, {}));
  while (turns.waiting() < 3) co_await aio::sleep_for(base::Milliseconds(0));
  stop.request_stop();
  while (story.empty()) co_await aio::sleep_for(base::Milliseconds(0));
  EXPECT_EQ(turns.waiting(), 2u);
  held.reset();
  co_await tasks.wait();
  // A stop from before is heard too, also by whose turn it would be.
  co_await take(turns, "key", "fourth", story, stop.get_token());
  co_return 0;
}

// covers: C2 R6
TEST(Turns, CanBeGivenUpWhileWaiting) {
  aio::Loop loop;
  Story story;
  loop.run(with_one_stopped(loop, story));
  EXPECT_EQ(story, (Story{"second stopped", "third begins", "third ends", "fourth stopped"}));
}

aio::Task<int> with_one_cancelled(aio::Loop& loop, Story& story) {
  Turns turns(loop.executor());
  auto held = turns.join("key");
  {
    aio::TaskGroup doomed(loop.executor());
    doomed.spawn(take(turns, "key", "second", story, {}));
    while (turns.waiting() < 2) co_await aio::sleep_for(base::Milliseconds(0));
    doomed.cancel();
    co_await doomed.wait();
  }
  EXPECT_EQ(turns.waiting(), 1u);
  held.reset();
  co_await take(turns, "key", "third", story, {});
  co_return 0;
}

TEST(Turns, OfACancelledTaskGoOn) {
  aio::Loop loop;
  Story story;
  loop.run(with_one_cancelled(loop, story));
  EXPECT_EQ(story, (Story{"third begins", "third ends"}));
}

TEST(Turns, SoManyWaitAtMost) {
  aio::Loop loop;
  Turns turns(loop.executor());
  std::vector<Turns::Place> places;
  places.reserve(Turns::kWaitingInAllMax);
  for (std::size_t i = 0; i < Turns::kWaitingMax; ++i) places.push_back(*turns.join("key"));
  EXPECT_FALSE(turns.join("key"));
  for (std::size_t i = places.size(); i < Turns::kWaitingInAllMax; ++i)
    places.push_back(*turns.join("key" + std::to_string(i)));
  EXPECT_FALSE(turns.join("another"));
  places.pop_back();
  EXPECT_TRUE(turns.join("another"));
  EXPECT_FALSE(turns.join("key"));
  places.erase(places.begin());
  EXPECT_TRUE(turns.join("key"));
}

}  // namespace
}  // namespace executor
