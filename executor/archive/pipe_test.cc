#include "executor/archive/pipe.h"

#include <gtest/gtest.h>

#include <thread>

#include "libs/aio/testing/run.h"

namespace executor {
namespace {

using aio::testing::tell;

struct Site {
  aio::Loop loop;
  std::shared_ptr<Pipe> pipe = std::make_shared<Pipe>(loop.executor());
  std::jthread thread;  // Joined before the loop goes.
};

constexpr int kPieces = 2000;
std::string piece(int number) { return std::string(static_cast<std::size_t>(number), 'x'); }

aio::Task<> read_what_a_thread_writes(Site& site) {
  site.thread = std::jthread([&pipe = *site.pipe] {
    for (int i = 1; i <= kPieces; ++i) EXPECT_TRUE(pipe.put(piece(i)));
    pipe.end();
  });
  for (int i = 1; i <= kPieces; ++i) EXPECT_EQ(co_await site.pipe->take(), piece(i));
  EXPECT_EQ(co_await site.pipe->take(), "") << "the end";
}
aio::Task<> tell_reading(Site& site) { return read_what_a_thread_writes(site); }
TEST(Pipe, CarriesFromAThreadToTheLoop) { tell(tell_reading); }

aio::Task<> write_for_a_thread(Site& site) {
  std::size_t bytes = 0;
  site.thread = std::jthread([&pipe = *site.pipe, &bytes] {
    while (const auto got = pipe.get()) {
      if (got->empty()) break;
      bytes += got->size();
    }
  });
  for (int i = 1; i <= kPieces; ++i) EXPECT_TRUE(co_await site.pipe->give(piece(i)));
  site.pipe->end();
  site.thread.join();
  EXPECT_EQ(bytes, kPieces * (kPieces + 1) / 2u);
}
aio::Task<> tell_writing(Site& site) { return write_for_a_thread(site); }
TEST(Pipe, CarriesFromTheLoopToAThread) { tell(tell_writing); }

aio::Task<> fill(Site& site) {
  const std::string mebibyte(Pipe::kBytesMax, 'x');
  EXPECT_TRUE(co_await site.pipe->give(mebibyte));
  const auto second = co_await aio::within(site.pipe->give("more"), base::Milliseconds(20));
  EXPECT_FALSE(second) << "the writer has to wait";
  EXPECT_EQ(co_await site.pipe->take(), mebibyte);
  EXPECT_EQ(co_await site.pipe->give("more"), true);
}
aio::Task<> tell_filling(Site& site) { return fill(site); }
// covers: O5
TEST(Pipe, HoldsNoMoreThanItMay) { tell(tell_filling); }

aio::Task<> break_off(Site& site) {
  EXPECT_TRUE(co_await site.pipe->give(std::string(Pipe::kBytesMax, 'x')));
  site.thread = std::jthread([&pipe = *site.pipe] {
    EXPECT_FALSE(pipe.put("waits for room, and learns that nobody wants it"));
    EXPECT_EQ(pipe.get(), std::nullopt);
  });
  site.pipe->break_off();
  EXPECT_FALSE(co_await site.pipe->give("more"));
  EXPECT_EQ(co_await site.pipe->take(), std::nullopt);
  site.thread.join();
}
aio::Task<> tell_breaking_off(Site& site) { return break_off(site); }
TEST(Pipe, LetsNobodyWaitWhenItIsBrokenOff) { tell(tell_breaking_off); }

}  // namespace
}  // namespace executor
