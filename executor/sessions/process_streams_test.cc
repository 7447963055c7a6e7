#include "executor/sessions/process_streams.h"

#include <gtest/gtest.h>

#include "executor/sessions/testing/site.h"
#include "libs/base/crypto.h"

// What the streams of processes carry: every byte once and in order, whatever becomes of the
// connections.
namespace executor {
namespace {

using testing::Asking;
using testing::Client;
using testing::Pipes;
using testing::Site;
using testing::Streamed;
using testing::tell_connected;
using testing::wait_until;
using wire::FailureCode;
using wire::WaitUntil;

constexpr Asking kMutating{.mutating = true};

// Bytes of which no two stretches are the same.
std::string counted(std::size_t bytes) {
  std::string all;
  for (int i = 0; all.size() < bytes; ++i) all += std::to_string(i) + "\n";
  all.resize(bytes);
  return all;
}

// A whole conversation with a command: it answers each line, and ends with its stdin.
aio::Task<> converse(Site& site, bool& done) {
  auto args = site.shell("while read line; do echo \"<$line>\"; echo \"!$line\" >&2; done; exit 4");
  Pipes ends;
  const Asking how = testing::pipe_all(site.client, args, ends);
  const auto spawned = co_await Client::ask(site.client, args, how);
  EXPECT_TRUE(spawned.ok) << (spawned.failure ? spawned.failure->message : "");
  Streamed out;
  co_await Client::put(site.client, ends.in, "one\n", false);
  co_await Client::take(site.client, ends.out, out, 6);
  co_await Client::put(site.client, ends.in, "two\n", true);
  co_await Client::take(site.client, ends.out, out, SIZE_MAX);
  const Streamed errors = co_await Client::all_of(site.client, ends.errors);
  EXPECT_EQ(out.bytes, "<one>\n<two>\n");
  EXPECT_EQ(errors.bytes, "!one\n!two\n");
  EXPECT_TRUE(out.ended && !out.error && errors.ended && !errors.error);
  const auto over =
      (co_await wait_until(site.client, args.handle, WaitUntil::kEmpty)).as<wire::WaitArgs>();
  EXPECT_EQ(over.state.exit_code, 4);
  EXPECT_TRUE((co_await Client::ask(site.client, wire::ReleaseArgs{args.handle}, kMutating)).ok);
  done = true;
}

// covers: 4.7, X4
TEST(ProcessStreams, AreExactHoweverTheConnectionBreaksOnce) {
  // Before each frame of either side, once; until it is over before that many have passed.
  for (int cut_at = 0;; ++cut_at) {
    SCOPED_TRACE(cut_at);
    Site site;
    int frames = 0;
    site.client.cut = [&](std::size_t) { return frames++ == cut_at; };
    bool done = false;
    aio::testing::run(site.loop, testing::connected(site.client, converse(site, done)));
    ASSERT_TRUE(done);
    ASSERT_LT(cut_at, 500);
    if (frames <= cut_at) {
      EXPECT_GT(cut_at, 20) << "there was something to cut";
      break;
    }
  }
}

aio::Task<> carry_much_both_ways(Site& site) {
  site.client.cut = testing::after_each(300'000);
  const std::string content = counted(8'000'000);
  auto args = site.command({"cat"});
  Pipes ends;
  const Asking how = testing::pipe_all(site.client, args, ends);
  EXPECT_TRUE((co_await Client::ask(site.client, args, how)).ok);
  std::optional<Streamed> out;
  std::optional<bool> wanted;
  co_await aio::both(aio::keep_result(Client::put(site.client, ends.in, content, true), wanted),
                     aio::keep_result(Client::all_of(site.client, ends.out), out));
  EXPECT_TRUE(out && out->ended && out->skipped == 0);
  EXPECT_EQ(base::sha256(out->bytes), base::sha256(content));
  EXPECT_GT(site.client.cuts, 10);
}
// covers: 4.7
TEST(ProcessStreams, CarryMuchBothWaysOverCut) { tell_connected(carry_much_both_ways); }

aio::Task<> stall_one(Site& site) {
  auto stalled = site.command({"head", "-c", "5000000", "/dev/zero"});
  std::uint32_t stalled_out = 0;
  const Asking how = testing::pipe_out(site.client, stalled, stalled_out);
  EXPECT_TRUE((co_await Client::ask(site.client, stalled, how)).ok);
  auto read = site.command({"head", "-c", "5000000", "/dev/zero"});
  std::uint32_t out = 0;
  const Asking also = testing::pipe_out(site.client, read, out);
  EXPECT_TRUE((co_await Client::ask(site.client, read, also)).ok);
  EXPECT_EQ((co_await Client::all_of(site.client, out)).bytes.size(), 5'000'000u);
  EXPECT_TRUE((co_await wait_until(site.client, read.handle, WaitUntil::kEmpty)).ok);
  const auto held =
      (co_await wait_until(site.client, stalled.handle, WaitUntil::kExit, 0)).as<wire::WaitArgs>();
  EXPECT_FALSE(held.reached) << "who is not read waits";
  EXPECT_LE(held.state.out->bytes, 3 << 20) << "in both ends and between them";
  const Streamed late = co_await Client::all_of(site.client, stalled_out);
  EXPECT_TRUE(late.bytes.size() == 5'000'000u && late.skipped == 0) << "and nothing of it was lost";
}
TEST(ProcessStreams, WhoIsNotReadHoldsBackItselfAlone) { tell_connected(stall_one); }

aio::Task<> mirror(Site& site) {
  const std::uint32_t out = site.client.session.new_stream();
  auto args = site.shell("head -c 20000000 /dev/zero; printf the-end");
  args.out = wire::Collected{.bytes_max = 100'000, .stream = out};
  const Asking how{.mutating = true, .to_client = {out}};
  EXPECT_TRUE((co_await Client::ask(site.client, args, how)).ok);
  const auto over =
      (co_await wait_until(site.client, args.handle, WaitUntil::kSettled)).as<wire::WaitArgs>();
  EXPECT_EQ(over.state.out->bytes, 20'000'007) << "it was never held back";
  const Streamed mirrored = co_await Client::all_of(site.client, out);
  EXPECT_TRUE(mirrored.ended && !mirrored.error);
  EXPECT_EQ(mirrored.skipped + static_cast<std::int64_t>(mirrored.bytes.size()), 20'000'007);
  EXPECT_GT(mirrored.skipped, 10'000'000);
  EXPECT_GE(mirrored.bytes.size(), 100'000u) << "all of the tail is there";
  EXPECT_TRUE(mirrored.bytes.ends_with("the-end"));
}
// covers: O2
TEST(ProcessStreams, AMirrorThatIsBehindSkipsToTheTailWithAMark) { tell_connected(mirror); }

// What a quick command lets go of before its spawn is answered is skipped like any other.
aio::Task<> mirror_quick_ones(Site& site) {
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const std::uint32_t out = site.client.session.new_stream();
    auto args = site.command({"head", "-c", "40000", "/dev/zero"});
    args.out = wire::Collected{.bytes_max = 1'000, .stream = out};
    const Asking how{.mutating = true, .to_client = {out}};
    EXPECT_TRUE((co_await Client::ask(site.client, args, how)).ok);
    const Streamed mirrored = co_await Client::all_of(site.client, out);
    EXPECT_EQ(mirrored.skipped + static_cast<std::int64_t>(mirrored.bytes.size()), 40'000);
  }
}
TEST(ProcessStreams, AMirrorCountsFromTheFirstByteThatWasWritten) {
  tell_connected(mirror_quick_ones);
}

aio::Task<> take_over(Site& site) {
  const std::string content = counted(600'000);
  site.folder.write("content", content);
  auto args = site.shell("cat content; read line; echo \"$line\"; read line; echo \"$line\"");
  Pipes ends;
  const Asking how = testing::pipe_all(site.client, args, ends);
  EXPECT_TRUE((co_await Client::ask(site.client, args, how)).ok);
  Streamed first;
  co_await Client::take(site.client, ends.out, first, 100'000);
  EXPECT_TRUE(co_await Client::put(site.client, ends.in, "first\n", false));

  // Another harness goes on where this one says that it is.
  Client& other = site.mate;
  site.tasks.spawn(Client::carry(other));
  const std::uint32_t in = other.session.new_stream(), out = other.session.new_stream();
  const auto so_far = static_cast<std::int64_t>(first.bytes.size());
  const auto attached = co_await testing::attach(other, args.handle, {out, so_far}, in);
  EXPECT_TRUE(attached.out && attached.stdin_at);
  if (!attached.out || !attached.stdin_at) co_return;
  const std::string stdin_so_far = "first\n";
  EXPECT_TRUE(*attached.stdin_at == 0 || *attached.stdin_at == 6);
  co_await Client::put(
      other, in, stdin_so_far.substr(static_cast<std::size_t>(*attached.stdin_at)) + "second\n",
      true);
  // What the first had on its way was had: the second begins there, or where it said.
  const auto begin = static_cast<std::size_t>(attached.out->from);
  EXPECT_EQ(attached.out->lossy, begin > first.bytes.size());
  const Streamed rest = co_await Client::all_of(other, out);
  EXPECT_EQ(rest.bytes, (content + "first\nsecond\n").substr(begin));
  EXPECT_TRUE(rest.ended && !rest.error);

  co_await Client::take(site.client, ends.out, first, SIZE_MAX);
  EXPECT_TRUE(first.error && first.error->code == FailureCode::kConflict);
  EXPECT_TRUE((content + "first\nsecond\n").starts_with(first.bytes));
  EXPECT_GE(first.bytes.size(), begin) << "between them they have all";
  while (!site.client.does_not_want(ends.in)) co_await site.client.said.wait();
  EXPECT_TRUE((co_await Client::all_of(site.client, ends.errors)).ended)
      << "an end that was not named stays with whom it was";
  other.session.finish();
  other.said.notify_all();
}
// covers: 4.7
TEST(ProcessStreams, AnAttachTakesTheEndsThatItNames) { tell_connected(take_over); }

aio::Task<> go_on_in_another_session(Site& site) {
  const std::string content = counted(3'000'000);
  site.folder.write("content", content);
  auto args = site.command({"cat", "content"});
  Client& first = site.mate;
  aio::TaskGroup link(site.loop.executor());
  link.spawn(Client::carry(first));
  std::uint32_t out = 0;
  const Asking how = testing::pipe_out(first, args, out);
  EXPECT_TRUE((co_await Client::ask(first, args, how)).ok);
  Streamed had;
  co_await Client::take(first, out, had, 700'000);
  link.cancel();
  co_await link.wait();
  // What has arrived is its own, also what it has not looked at yet.
  while (const auto piece = first.session.take(out)) had.bytes += piece->bytes;

  const std::uint32_t on = site.client.session.new_stream();
  const wire::AttachArgs attach{
      .handle = args.handle,
      .out = wire::AttachedOutput{on, static_cast<std::int64_t>(had.bytes.size())},
      .adopt = true};
  const auto attached =
      (co_await Client::ask(site.client, attach, {.mutating = true, .to_client = {on}}))
          .as<wire::AttachArgs>();
  EXPECT_TRUE(attached.out && !attached.out->lossy);
  const Streamed rest = co_await Client::all_of(site.client, on);
  EXPECT_EQ(had.bytes + rest.bytes, content);

  const auto late = site.client.session.new_stream();
  const auto again = co_await testing::attach(site.client, args.handle, {late, 0});
  EXPECT_TRUE(again.out && again.out->lossy && again.out->from > 0) << "that is gone, and said so";
  EXPECT_TRUE((co_await Client::all_of(site.client, late)).ended);
}
// covers: 4.7
TEST(ProcessStreams, AnotherSessionGoesOnWithAPipeAtTheRightByte) {
  tell_connected(go_on_in_another_session);
}

aio::Task<> stop_reading(Site& site) {
  auto args = site.command({"yes"});
  std::uint32_t out = 0;
  const Asking how = testing::pipe_out(site.client, args, out);
  EXPECT_TRUE((co_await Client::ask(site.client, args, how)).ok);
  Streamed some;
  co_await Client::take(site.client, out, some, 100'000);
  site.client.session.stop(out);
  site.client.said.notify_all();
  const auto over =
      (co_await wait_until(site.client, args.handle, WaitUntil::kEmpty)).as<wire::WaitArgs>();
  EXPECT_EQ(over.state.signal, "SIGPIPE") << "as of a pipe whose reader has left";
}
TEST(ProcessStreams, AReaderThatStopsClosesThePipe) { tell_connected(stop_reading); }

aio::Task<> stop_mirroring(Site& site) {
  const std::uint32_t out = site.client.session.new_stream();
  auto args = site.shell("echo first; read line; echo \"$line\"");
  args.in = wire::Pipe{site.client.session.new_stream()};
  args.out = wire::Collected{.bytes_max = 1000, .stream = out};
  const std::uint32_t in = std::get<wire::Pipe>(args.in).stream;
  EXPECT_TRUE((co_await Client::ask(site.client, args,
                                    {.mutating = true, .to_client = {out}, .to_server = {in}}))
                  .ok);
  Streamed some;
  co_await Client::take(site.client, out, some, 6);
  site.client.session.stop(out);
  co_await Client::put(site.client, in, "second\n", false);
  const auto over =
      (co_await wait_until(site.client, args.handle, WaitUntil::kSettled)).as<wire::WaitArgs>();
  EXPECT_EQ(over.state.exit_code, 0);
  EXPECT_EQ(over.state.out->bytes, 13) << "it is collected all the same";
  // Its stdin was never ended; nobody is there to read it.
  while (!site.client.does_not_want(in)) co_await site.client.said.wait();
  EXPECT_EQ(site.client.session.streams_open(), 0u);
}
TEST(ProcessStreams, StopTheMirrorAloneAndAStdinWithoutAReader) { tell_connected(stop_mirroring); }

aio::Task<> keep_stdin_within_bounds(Site& site) {
  auto args = site.command({"sleep", "1000"});
  const std::uint32_t in = site.client.session.new_stream();
  args.in = wire::Pipe{in};
  EXPECT_TRUE((co_await Client::ask(site.client, args, {.mutating = true, .to_server = {in}})).ok);
  // Until neither side moves: what both hold, and the kernel between.
  std::int64_t sent = 0;
  for (int quiet = 0; quiet < 20;) {
    const std::size_t room = std::min<std::size_t>(site.client.session.room(in), 64 << 10);
    site.client.session.append(in, std::string(room, 'x'));
    site.client.said.notify_all();
    sent += static_cast<std::int64_t>(room);
    quiet = room == 0 ? quiet + 1 : 0;
    co_await aio::sleep_for(base::Milliseconds(5));
  }
  EXPECT_GT(sent, kInputWindowBytes);
  EXPECT_LE(sent, kInputWindowBytes + (3 << 20));
  co_await Client::ask(site.client, wire::TerminateArgs{args.handle, 1}, kMutating);
  while (!site.client.does_not_want(in)) co_await site.client.said.wait();
}
TEST(ProcessStreams, HoldSoMuchForAProcessThatDoesNotRead) {
  tell_connected(keep_stdin_within_bounds);
}

}  // namespace
}  // namespace executor
