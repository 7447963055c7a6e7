#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "executor/subprocess/input.h"
#include "executor/subprocess/output.h"
#include "libs/aio/loop.h"
#include "libs/aio/testing/run.h"

namespace executor {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    out = base::Fd(ends[0]);
    in = base::Fd(ends[1]);
    ::signal(SIGPIPE, SIG_IGN);
  }
  base::Fd out, in;
};

struct Ends {
  aio::Loop loop;
  aio::TaskGroup tasks{loop.executor()};
  Pipe pipe;
};

aio::Task<> takes_once_what_comes_twice(Ends& ends) {
  const auto input = std::make_shared<ProcessInput>(ends.loop.executor(), std::move(ends.pipe.in));
  ends.tasks.spawn(ProcessInput::carry(input));
  const auto there = aio::Stream::over(ends.loop.executor(), std::move(ends.pipe.out), base::Fd());
  EXPECT_TRUE(input->put(0, "abcdef"));
  EXPECT_TRUE(input->put(0, "abcdef"));
  EXPECT_TRUE(input->put(3, "defghi"));
  EXPECT_TRUE(input->put(2, "cd"));
  EXPECT_EQ(input->arrived(), 9);
  EXPECT_FALSE(input->put(10, "later")) << "a gap";
  EXPECT_FALSE(input->put(-1, "x"));
  EXPECT_FALSE(input->end_at(8));
  EXPECT_TRUE(input->end_at(9));
  EXPECT_TRUE(input->end_at(9)) << "it may be said again";
  EXPECT_TRUE(input->put(3, "def")) << "and an old part as well";
  EXPECT_FALSE(input->put(9, "x"));
  std::string heard;
  for (char piece[64];;) {
    const auto got = co_await there->read(piece, sizeof piece);
    if (!got || *got == 0) break;
    heard.append(piece, *got);
  }
  EXPECT_EQ(heard, "abcdefghi");
}
TEST(ProcessInput, TakesOnceWhatArrivesTwice) { aio::testing::tell(takes_once_what_comes_twice); }

aio::Task<> is_bounded(Ends& ends) {
  const auto input = std::make_shared<ProcessInput>(ends.loop.executor(), std::move(ends.pipe.in));
  ends.tasks.spawn(ProcessInput::carry(input));
  std::int64_t put = 0;
  // As much as the pipe and the window hold; then nobody may send more.
  for (;;) {
    const auto room = input->may_reach() - put;
    if (room == 0) break;
    EXPECT_TRUE(input->put(put, std::string(static_cast<std::size_t>(room), 'x')));
    put += room;
    co_await aio::race(input->wait_to_reach(put + 1), aio::sleep_for(base::Milliseconds(100)));
  }
  EXPECT_FALSE(input->put(put, "x"));
  EXPECT_LE(put, 2 * kInputWindowBytes + (64 << 10));
  char piece[4096];
  while (input->may_reach() == put) {
    EXPECT_GT(::read(ends.pipe.out.get(), piece, sizeof piece), 0);
    co_await aio::sleep_for(base::Milliseconds(0));
  }
  EXPECT_TRUE(input->put(put, "x"));
}
TEST(ProcessInput, HoldsNoMoreThanItsWindow) { aio::testing::tell(is_bounded); }

aio::Task<> drops_what_nobody_reads(Ends& ends) {
  const auto input = std::make_shared<ProcessInput>(ends.loop.executor(), std::move(ends.pipe.in));
  ends.tasks.spawn(ProcessInput::carry(input));
  ends.pipe.out.reset();
  EXPECT_TRUE(input->put(0, "x"));
  while (!input->unread()) co_await aio::sleep_for(base::Milliseconds(1));
  for (int time = 0; time < 100; ++time) {
    co_await input->wait_to_reach(input->arrived() + kInputWindowBytes);
    EXPECT_TRUE(input->put(input->arrived(), std::string(kInputWindowBytes, 'x')));
  }
  EXPECT_TRUE(input->end_at(input->arrived()));
}
TEST(ProcessInput, DropsWhatNobodyReadsAnyMore) { aio::testing::tell(drops_what_nobody_reads); }

aio::Task<> is_lossless(Ends& ends) {
  const auto output = std::make_shared<ProcessOutput>(ends.loop.executor(),
                                                      std::move(ends.pipe.out), Piped{}, nullptr);
  ends.tasks.spawn(ProcessOutput::carry(output));
  auto there = aio::Stream::over(ends.loop.executor(), base::Fd(), std::move(ends.pipe.in));
  const std::string bytes(kPipeWindowBytes, 'x');
  EXPECT_TRUE(co_await there->write(bytes));
  co_await output->wait_for(kPipeWindowBytes - 1);
  EXPECT_EQ(output->state().bytes, static_cast<std::int64_t>(kPipeWindowBytes));
  // Full: from here on the pipe itself fills, and then whoever writes waits.
  EXPECT_FALSE(co_await aio::within(there->write(bytes), base::Milliseconds(200)));
  EXPECT_EQ(output->state().bytes, static_cast<std::int64_t>(kPipeWindowBytes));
  // What was sent may have been lost on its way, so it can be read again until it is acknowledged.
  for (int time = 0; time < 2; ++time) {
    const auto piece = output->read(10, 5);
    EXPECT_TRUE(piece && piece->bytes == "xxxxx" && !piece->lossy && piece->next == 15);
  }
  EXPECT_FALSE(output->acknowledge(kPipeWindowBytes + 1)) << "that was not written yet";
  EXPECT_TRUE(output->acknowledge(100));
  EXPECT_FALSE(output->read(99, 5)) << "that was acknowledged";
  co_await output->wait_for(kPipeWindowBytes + 99);
  EXPECT_EQ(output->state().bytes, static_cast<std::int64_t>(kPipeWindowBytes) + 100);
  EXPECT_EQ(output->held(), static_cast<std::int64_t>(kPipeWindowBytes));
}
// covers: 4.2
TEST(ProcessOutput, APipeHoldsItsWindowAndReadsNoMore) { aio::testing::tell(is_lossless); }

aio::Task<> hangs_up(Ends& ends) {
  const auto output = std::make_shared<ProcessOutput>(ends.loop.executor(),
                                                      std::move(ends.pipe.out), Piped{}, nullptr);
  ends.tasks.spawn(ProcessOutput::carry(output));
  auto there = aio::Stream::over(ends.loop.executor(), base::Fd(), std::move(ends.pipe.in));
  EXPECT_FALSE(co_await aio::within(there->write(std::string(2 * kPipeWindowBytes, 'x')),
                                    base::Milliseconds(200)))
      << "it is full";
  output->hang_up();
  co_await output->wait_for_end();
  EXPECT_FALSE(co_await there->write("x")) << "nobody reads it";
  EXPECT_EQ(output->held(), 0);
  EXPECT_TRUE(output->read(output->state().bytes, 10)->ended);
}
TEST(ProcessOutput, APipeThatNobodyWantsAnyMoreIsClosed) { aio::testing::tell(hangs_up); }

}  // namespace
}  // namespace executor
