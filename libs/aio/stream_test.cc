#include "libs/aio/stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libs/aio/testing/talk.h"

namespace aio {
namespace {

using testing::hear_all;
using testing::hear_until;

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    out = base::Fd(ends[0]);
    in = base::Fd(ends[1]);
  }
  base::Fd out, in;
};

Task<int> carries_pipes(Executor executor) {
  Pipe to, from;
  auto here = Stream::over(executor, std::move(from.out), std::move(to.in));
  auto there = Stream::over(executor, std::move(to.out), std::move(from.in));
  EXPECT_TRUE(co_await here->write("question"));
  EXPECT_EQ(co_await hear_until(there, "question"), "question");
  EXPECT_TRUE(co_await there->write("answer"));
  there->close_write();
  EXPECT_EQ(co_await hear_all(here), "answer<end>");
  here->close();
  EXPECT_FALSE(here->open());
  EXPECT_EQ(co_await hear_all(here), "<broken>");
  co_return 0;
}
TEST(Stream, CarriesBytesOverPipes) {
  Loop loop;
  loop.run(carries_pipes(loop.executor()));
}

Task<int> ends_with_terminal(Executor executor) {
  base::Fd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  EXPECT_EQ(::grantpt(master.get()), 0);
  EXPECT_EQ(::unlockpt(master.get()), 0);
  base::Fd slave(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  auto terminal = Stream::over(executor, std::move(master));
  EXPECT_EQ(::write(slave.get(), "hi", 2), 2);
  EXPECT_EQ(co_await hear_until(terminal, "hi"), "hi");
  slave.reset();
  EXPECT_EQ(co_await hear_all(terminal), "<end>");
  co_return 0;
}
TEST(Stream, EndsWithTheLastProcessOfATerminal) {
  Loop loop;
  loop.run(ends_with_terminal(loop.executor()));
}

std::pair<std::shared_ptr<Stream>, std::shared_ptr<Stream>> socket_pair(Executor executor) {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Stream::over(executor, base::Fd(ends[0])), Stream::over(executor, base::Fd(ends[1]))};
}

Task<> write_much(std::shared_ptr<Stream> stream, std::size_t size) {
  const std::string much(size, 'x');
  EXPECT_TRUE(co_await stream->write(much));
  stream->close_write();
}

Task<int> waits_for_reader(Executor executor) {
  auto [here, there] = socket_pair(executor);
  TaskGroup group(executor);
  group.spawn(write_much(here, 4u << 20));
  co_await sleep_for(base::Milliseconds(1));
  EXPECT_EQ(group.size(), 1u) << "the socket's buffer cannot hold all of it";
  EXPECT_EQ((co_await hear_all(there)).size(), (4u << 20) + std::string("<end>").size());
  co_await group.wait();
  co_return 0;
}
TEST(Stream, WaitsWhileThePeerDoesNotRead) {
  Loop loop;
  loop.run(waits_for_reader(loop.executor()));
}

Task<> keep(Task<std::string> task, std::string& kept) { kept = co_await std::move(task); }

Task<int> closing_wakes_reader(Executor executor) {
  auto [here, there] = socket_pair(executor);
  TaskGroup group(executor);
  std::string heard;
  group.spawn(keep(hear_all(here), heard));
  co_await sleep_for(base::Milliseconds(1));
  here->reset();
  co_await group.wait();
  EXPECT_EQ(heard, "<broken>");
  EXPECT_FALSE(co_await there->write("to nobody")) << "and no SIGPIPE";
  co_return 0;
}
TEST(Stream, ClosingWakesItsReader) {
  Loop loop;
  loop.run(closing_wakes_reader(loop.executor()));
}

Task<int> limit_keeps_bytes(Executor executor) {
  auto [here, there] = socket_pair(executor);
  char byte = 0;
  EXPECT_EQ(co_await within(here->wait_readable(), base::Milliseconds(5)), std::nullopt);
  EXPECT_TRUE(co_await there->write("a"));
  EXPECT_TRUE(co_await here->read(&byte, 1));
  EXPECT_EQ(byte, 'a');
  co_return 0;
}
TEST(Stream, GoesOnAfterAReadThatTookTooLong) {
  Loop loop;
  loop.run(limit_keeps_bytes(loop.executor()));
}

Task<int> connects_or_says_why() {
  const auto nobody = co_await connect("127.0.0.1", 1, testing::kPatience);
  EXPECT_FALSE(nobody);
  if (!nobody) EXPECT_EQ(nobody.error().message, "connect: Connection refused");
  const auto nowhere = co_await connect("localhost", 1, testing::kPatience);
  EXPECT_EQ(nowhere.error().code, base::ErrorCode::kInvalid);
  co_return 0;
}
TEST(Stream, TellsWhyItCannotConnect) {
  Loop loop;
  loop.run(connects_or_says_why());
}

// A TCP socket at 127.0.0.1 and its port; 0 picks a free one.
std::pair<base::Fd, int> bound(int port) {
  base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(static_cast<std::uint16_t>(port));
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof here;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&here), size) != 0) return {base::Fd(), 0};
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &size);
  return {std::move(socket), ntohs(here.sin_port)};
}

Task<int> does_not_reach_itself() {
  auto [socket, port] = bound(0);
  const auto itself = co_await connect(std::move(socket), "127.0.0.1", port, testing::kPatience);
  EXPECT_FALSE(itself);
  if (!itself) EXPECT_EQ(itself.error().message, "connect: Connection refused");
  EXPECT_TRUE(bound(port).first) << "the port is free for who wants to listen";
  co_return 0;
}
TEST(Stream, DoesNotTakeItselfForAPeer) {
  Loop loop;
  loop.run(does_not_reach_itself());
}

}  // namespace
}  // namespace aio
