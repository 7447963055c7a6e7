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

// A file that always has bytes ready, and room for them: nothing makes its reader or writer wait.
std::shared_ptr<Stream> endless(Executor executor) {
  return Stream::over(executor, base::Fd(::open("/dev/zero", O_RDONLY | O_CLOEXEC)),
                      base::Fd(::open("/dev/null", O_WRONLY | O_CLOEXEC)));
}

Task<> have_turn(bool& had) {
  co_await sleep_for(base::Milliseconds(0));
  had = true;
}

Task<> read_bytes(std::shared_ptr<Stream> stream, int times) {
  char byte = 0;
  for (int time = 0; time < times; ++time)
    if (!co_await stream->read(&byte, 1)) co_return;  // Cancelled.
}
Task<bool> said_done(Task<> task) {
  co_await std::move(task);
  co_return true;
}
Task<> write_bytes(std::shared_ptr<Stream> stream, int times) {
  for (int time = 0; time < times; ++time) EXPECT_TRUE(co_await stream->write("x"));
}
Task<> write_at_once(std::shared_ptr<Stream> stream, int mebibytes) {
  const std::string much(static_cast<std::size_t>(mebibytes) << 20, 'x');
  EXPECT_TRUE(co_await stream->write(much));
}

Task<int> gives_way(Executor executor, Task<> (*use)(std::shared_ptr<Stream>, int), int amount) {
  TaskGroup group(executor);
  bool had_turn = false;
  group.spawn(have_turn(had_turn));
  co_await use(endless(executor), amount);
  EXPECT_TRUE(had_turn);
  co_await group.wait();
  co_return 0;
}
TEST(Stream, GivesWayToOthersThoughItNeverHasToWait) {
  Loop loop;
  loop.run(gives_way(loop.executor(), read_bytes, 100));
  loop.run(gives_way(loop.executor(), write_bytes, 100));
  loop.run(gives_way(loop.executor(), write_at_once, 4));
}

Task<int> has_a_limit(Executor executor) {
  constexpr int kTimes = 1'000'000;  // Takes far longer than the limit.
  const auto read =
      co_await within(said_done(read_bytes(endless(executor), kTimes)), base::Milliseconds(5));
  EXPECT_EQ(read, std::nullopt);
  co_return 0;
}
TEST(Stream, CanBeLimitedThoughItNeverHasToWait) {
  Loop loop;
  loop.run(has_a_limit(loop.executor()));
}

Task<> count_bytes(std::shared_ptr<Stream> stream, std::size_t& count) {
  char byte = 0;
  for (;;) {
    const auto got = co_await stream->read(&byte, 1);
    if (!got || *got == 0) co_return;
    ++count;
  }
}
Task<int> loses_nothing(Executor executor) {
  constexpr std::size_t kBytes = 60'000;  // Fit into a pipe.
  Pipe pipe;
  const std::string bytes(kBytes, 'x');
  EXPECT_EQ(::write(pipe.in.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(kBytes));
  pipe.in.reset();
  auto stream = Stream::over(executor, std::move(pipe.out), base::Fd());
  std::size_t count = 0;
  for (int time = 0; time < 100; ++time)
    co_await race(count_bytes(stream, count), sleep_for(base::Milliseconds(0)));
  EXPECT_LT(count, kBytes) << "it was cancelled each time";
  co_await count_bytes(stream, count);
  EXPECT_EQ(count, kBytes);
  co_return 0;
}
TEST(Stream, LosesNoByteWhenCancelledAsItGivesWay) {
  Loop loop;
  loop.run(loses_nothing(loop.executor()));
}

// A connected pair over TCP, whose peers can send urgent bytes.
std::pair<base::Fd, base::Fd> urgent_pair() {
  const base::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof here;
  auto* address = reinterpret_cast<sockaddr*>(&here);
  EXPECT_EQ(::bind(listener.get(), address, size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  ::getsockname(listener.get(), address, &size);
  base::Fd caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(caller.get(), address, size), 0);
  return {std::move(caller), base::Fd(::accept(listener.get(), nullptr, nullptr))};
}

Task<int> hears_urgent_words(Executor executor) {
  auto [caller, other] = urgent_pair();
  const auto stream = Stream::over(executor, std::move(caller));
  EXPECT_EQ(::send(other.get(), "x", 1, 0), 1);
  EXPECT_FALSE(co_await within(stream->wait_urgent(), base::Milliseconds(50)))
      << "plain bytes are not urgent";
  EXPECT_EQ(::send(other.get(), "!", 1, MSG_OOB), 1);
  const auto heard = co_await within(stream->wait_urgent(), testing::kPatience);
  EXPECT_TRUE(heard && *heard);
  stream->close();
  EXPECT_FALSE(co_await stream->wait_urgent());
  co_return 0;
}
TEST(Stream, TellsAnUrgentWordFromPlainBytes) {
  Loop loop;
  loop.run(hears_urgent_words(loop.executor()));
}

Task<int> connects_over_v6(int listener, int port) {
  const auto stream = co_await connect("::1", port, testing::kPatience);
  EXPECT_TRUE(stream);
  if (!stream) co_return 0;
  EXPECT_TRUE(base::Fd(::accept(listener, nullptr, nullptr)));  // And closed.
  EXPECT_EQ(co_await hear_all(*stream), "<end>");
  co_return 0;
}
TEST(Stream, ConnectsToAddressesOfBothFamilies) {
  const base::Fd listener(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (::bind(listener.get(), plain, size) != 0) GTEST_SKIP() << "this machine has no IPv6";
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), plain, &size), 0);
  Loop loop;
  loop.run(connects_over_v6(listener.get(), ntohs(address.sin6_port)));
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
