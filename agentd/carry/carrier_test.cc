#include "agentd/carry/carrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agentd/testing/site.h"
#include "libs/aio/testing/run.h"
#include "libs/aio/tls/tls.h"
#include "libs/base/certificate.h"
#include "libs/base/crypto.h"
#include "libs/wire/frames/operations.h"
#include "libs/wire/session/endpoint.h"

namespace agentd {
namespace {

using namespace std::chrono_literals;
using agentd::testing::eventually;
using agentd::testing::Harness;
using agentd::testing::pattern;
using agentd::testing::Site;
using ::testing::HasSubstr;
using ::testing::Not;

wire::Call echo(const std::string& text) { return {.op = "echo", .args = {{"text", text}}}; }
wire::Call add(int count) { return {.op = "add", .args = {{"count", count}}, .mutating = true}; }

void ask(Harness& harness, wire::Call call) {
  EXPECT_TRUE(harness.session.ask(std::move(call)));
  harness.wake();
}

std::string message(const Harness& harness) {
  const auto closed = harness.all<wire::Closed>();
  return closed.empty() ? "it has not ended" : closed.back().close.message;
}

std::string jwt(base::WallTime end) {
  const base::Json claims = {{"exp", end.time_since_epoch().count() / 1'000}};
  return "e30." + base::to_base64url(base::to_text(claims)) + ".c2ln";
}

// A harness that is told frame by frame what to say.
struct Raw {
  // The next message of that kind; a close ends the wait.
  template <typename Kind>
  static aio::Task<std::optional<Kind>> hear(Raw& raw) {
    char piece[4096];
    for (;;) {
      auto frame = raw.reader.next();
      if (frame && *frame) {
        auto message = *wire::to_message(**std::move(frame));
        if (auto* wanted = std::get_if<Kind>(&message)) co_return std::move(*wanted);
        if (std::holds_alternative<wire::Close>(message)) co_return std::nullopt;
        continue;
      }
      const auto got = co_await raw.stream->read(piece, sizeof piece);
      if (!got || *got == 0) co_return std::nullopt;
      raw.reader.add({piece, *got});
    }
  }
  static aio::Task<> say(Raw& raw, wire::Message message) {
    EXPECT_TRUE(co_await raw.stream->write(wire::encode(wire::to_frame(std::move(message)))));
  }

  std::shared_ptr<aio::Stream> stream;
  wire::FrameReader reader = {};
};

aio::Task<> ask_and_be_answered(Site& site) {
  Harness& harness = site.harness();
  ask(harness, echo("hello"));
  ask(harness, add(3));
  site.link(harness, jwt(site.clock.wall() + 10min));
  EXPECT_TRUE(co_await Harness::heard<wire::Answered>(harness, 2));
  EXPECT_EQ(site.executor.added, 3);
  EXPECT_EQ(site.ways.last_sandbox, (wire::SandboxName{"team-a", "box"}));
  const auto welcome = harness.all<wire::Welcomed>().at(0).welcome;
  EXPECT_EQ(welcome.uid, "uid-1");
  EXPECT_EQ(welcome.cwd, "/work");
  EXPECT_EQ(welcome.features, std::vector<std::string>{"files"});
  EXPECT_GT(welcome.expires_ms, 9 * 60'000) << "the harness's own token, not agentd's";
  EXPECT_LE(welcome.expires_ms, 10 * 60'000);
  EXPECT_EQ(site.metric("sandfleet_agentd_links"), "1");
  EXPECT_EQ(site.metric(R"(sandfleet_agentd_dials_total{attempt="first",result="welcome"})"), "1");
  EXPECT_EQ(site.metric(R"(sandfleet_agentd_welcomes_total{session="new"})"), "1");
}
TEST(Carriers, CarryWhatIsAskedAndAnswered) { aio::testing::tell(ask_and_be_answered); }

aio::Task<> end_the_session(Site& site) {
  ::testing::internal::CaptureStderr();
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  EXPECT_TRUE(co_await eventually([&] { return site.executor.host.sessions() == 1; }));
  harness.session.finish();
  harness.wake();
  EXPECT_TRUE(co_await eventually([&] { return site.executor.host.sessions() == 0; }));
  EXPECT_TRUE(co_await eventually([&] { return site.carriers->size() == 0; }));
  EXPECT_EQ(site.metric("sandfleet_agentd_links"), "0");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("no executor")))
      << "it was to hang up";
}
// covers: W5
TEST(Carriers, EndASessionWhenTheHarnessDoes) { aio::testing::tell(end_the_session); }

aio::Task<> break_the_rules(Site& site) {
  const std::string bad[] = {
      std::string("GET / HTTP/1.1\r\n\r\n"), wire::encode(wire::to_frame(wire::Hello{})),
      wire::encode(wire::to_frame(wire::Close{wire::CloseReason::kProtocol}))};
  for (const std::string& bytes : bad) {
    Raw raw{site.connect()};
    co_await Raw::say(raw, wire::Hello{.sandbox = wire::SandboxName{"team-a", "box"}});
    const auto welcome = co_await Raw::hear<wire::Welcome>(raw);
    co_await Raw::say(raw, wire::Resume{.link = welcome->link});
    EXPECT_TRUE(co_await Raw::hear<wire::Resume>(raw));
    EXPECT_EQ(site.executor.host.sessions(), 1u);
    EXPECT_TRUE(co_await raw.stream->write(bytes));
    EXPECT_TRUE(co_await eventually([&] { return site.executor.host.sessions() == 0; }));
    raw.stream->close();
    EXPECT_TRUE(co_await eventually([&] { return site.carriers->size() == 0; }));
  }
}
// covers: W5
TEST(Carriers, EndASessionInWhichTheProtocolWasBroken) { aio::testing::tell(break_the_rules); }

// The harness ends its session while there is no way to the executor.
aio::Task<> end_without_an_executor(Site& site) {
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  site.ways.answer = [] { return NoWay{wire::NoEntry::kNotReady, "away", 10ms}; };
  site.executor.resumed({"uid-1", 3, 4, 8});  // Another run: the way of before leads nowhere.
  EXPECT_TRUE(co_await eventually([&] { return site.executor.links() == 0; }));
  EXPECT_TRUE(co_await eventually([&] { return site.ways.asked == 2; }));
  harness.session.finish();
  harness.wake();
}
aio::Task<> end_later(Site& site) {
  co_await end_without_an_executor(site);
  const int asked = site.ways.asked;
  EXPECT_TRUE(co_await eventually([&] { return site.ways.asked > asked; }));
  EXPECT_EQ(site.executor.host.sessions(), 1u);
  site.ways.answer = [&] { return site.executor.way(); };
  EXPECT_TRUE(co_await eventually([&] { return site.executor.host.sessions() == 0; }));
  EXPECT_TRUE(co_await eventually([&] { return site.carriers->size() == 0; }));
}
// covers: W5
TEST(Carriers, EndASessionOnceItsExecutorIsBack) { aio::testing::tell(end_later); }

aio::Task<> come_back_meanwhile(Site& site) {
  co_await end_without_an_executor(site);
  EXPECT_TRUE(co_await eventually([&] { return site.metric("sandfleet_agentd_links") == "0"; }));
  EXPECT_EQ(site.carriers->size(), 1u) << "it still has a word for the executor";
  Harness& again = site.harness();
  site.link(again);
  site.ways.answer = [&] { return site.executor.way(); };
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(again)) << message(again);
  EXPECT_TRUE(co_await eventually([&] { return site.executor.host.sessions() == 1; }))
      << "the one of before has ended";
}
TEST(Carriers, LetWhoHasPartedComeBackWhileItsSessionIsStillToEnd) {
  Site site({.links_max = 1, .links_each_max = 1});
  aio::testing::run(site.loop, come_back_meanwhile(site));
}

aio::Task<> end_too_late(Site& site) {
  co_await end_without_an_executor(site);
  EXPECT_TRUE(co_await eventually([&] { return site.carriers->size() == 0; }));
  EXPECT_EQ(site.executor.host.sessions(), 1u) << "its lease runs";
}
TEST(Carriers, WaitOnlySoLongToTellThatASessionEnds) {
  Site site({}, {.end_later = 50ms});
  aio::testing::run(site.loop, end_too_late(site));
}

// All that it says and its end are there at once.
aio::Task<> say_much_and_go(Site& site) {
  constexpr int kMany = 30;
  Raw raw{site.connect()};
  co_await Raw::say(raw, wire::Hello{.sandbox = wire::SandboxName{"team-a", "box"}});
  const auto welcome = co_await Raw::hear<wire::Welcome>(raw);
  co_await Raw::say(raw, wire::Resume{.link = welcome->link});
  EXPECT_TRUE(co_await Raw::hear<wire::Resume>(raw));
  std::string all;
  for (int i = 1; i <= kMany; ++i)
    all += wire::encode(wire::to_frame(wire::Request{
        .id = static_cast<std::uint32_t>(i), .op = "add", .args = {{"count", 1}}, .seq = i}));
  EXPECT_TRUE(co_await raw.stream->write(all));
  raw.stream->close();
  EXPECT_TRUE(co_await eventually([&] { return site.carriers->size() == 0; }));
  EXPECT_TRUE(co_await eventually([&] { return site.executor.links() == 0; }));
  EXPECT_EQ(site.executor.added, kMany);
  EXPECT_EQ(site.executor.host.sessions(), 1u) << "its lease runs";
}
// covers: 4.7
TEST(Carriers, HandOnWhatWasSaidBeforeALinkBroke) {
  Site site({}, {.hang_up = 60s});  // As long as a busy machine takes.
  aio::testing::run(site.loop, say_much_and_go(site));
}

aio::Task<> hang_up(Site& site) {
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  harness.stream->close();
  EXPECT_TRUE(co_await eventually([&] { return site.executor.links() == 0; }));
  EXPECT_EQ(site.executor.host.sessions(), 1u) << "its lease runs";
  ask(harness, echo("again"));
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Answered>(harness));
  EXPECT_TRUE(harness.all<wire::Welcomed>().back().welcome.resumed);
}
// covers: 4.7
TEST(Carriers, LeaveASessionToItsLeaseWhenTheHarnessIsGone) { aio::testing::tell(hang_up); }

aio::Task<> leave_in_a_hurry(Site& site) {
  for (int i = 0; i < 20; ++i) {
    Raw raw{site.connect()};
    co_await Raw::say(raw, wire::Hello{.sandbox = wire::SandboxName{"team-a", "box"}});
    const auto welcome = co_await Raw::hear<wire::Welcome>(raw);
    co_await Raw::say(raw, wire::Resume{.link = welcome->link});
    EXPECT_TRUE(co_await Raw::hear<wire::Resume>(raw));
    co_await Raw::say(
        raw,
        wire::Request{.id = 1, .op = "pattern", .args = {{"bytes", 1 << 20}}, .down = 1 << 20});
    EXPECT_TRUE(co_await Raw::hear<wire::Reply>(raw));
    co_await Raw::say(raw, wire::Close{.reason = wire::CloseReason::kEnd});
    raw.stream->close();  // While there is much that it has not read.
  }
  EXPECT_TRUE(co_await eventually([&] { return site.carriers->size() == 0; }));
  EXPECT_TRUE(co_await eventually([&] { return site.executor.host.sessions() == 0; }));
}
TEST(Carriers, HearTheLastWordOfWhoHasHungUp) { aio::testing::tell(leave_in_a_hurry); }

// --- Cuts.

struct Downloaded {
  std::int64_t bytes = 0;
  bool exact = true, ended = false;
};
void take_all(Harness& harness, std::uint32_t stream, Downloaded& so_far) {
  while (const auto piece = harness.session.take(stream)) {
    so_far.exact &= piece->bytes == pattern(so_far.bytes, piece->bytes.size());
    so_far.bytes += static_cast<std::int64_t>(piece->bytes.size());
    so_far.ended |= piece->end;
  }
  harness.wake();
}

aio::Task<> download_with_cuts(Site& site) {
  constexpr std::int64_t kBytes = 6 << 20, kCutEach = 777'777;
  Harness& harness = site.harness();
  site.link(harness);
  const auto stream =
      harness.session.ask({.op = "pattern", .args = {{"bytes", kBytes}}, .down = true});
  int cuts = 0, asked = 0;
  Downloaded got;
  while (!got.ended) {
    if (got.bytes > cuts * kCutEach && site.executor.links() > 0) {
      site.executor.cut();
      ++cuts;
    }
    if (asked < 40 && harness.session.waiting() < 8 && harness.session.ask(add(1))) ++asked;
    const std::size_t heard = harness.events.size();
    take_all(harness, *stream, got);
    if (harness.events.size() == heard) co_await aio::sleep_for(1ms);
  }
  EXPECT_TRUE(got.exact);
  EXPECT_EQ(got.bytes, kBytes);
  EXPECT_TRUE(co_await eventually([&] { return harness.session.waiting() == 0; }));
  EXPECT_EQ(site.executor.added, asked) << "each of those acted once";
  EXPECT_GE(cuts, 6);
  EXPECT_EQ(harness.left(), "") << "the harness's own link was never cut";
  EXPECT_GE(harness.all<wire::Welcomed>().size(), 6u);
}
// covers: 4.7 C2
TEST(Carriers, GoOnToTheByteWhenTheExecutorsLinkIsCut) { aio::testing::tell(download_with_cuts); }

aio::Task<> be_late(Site& site) {
  Raw raw{site.connect()};
  co_await Raw::say(raw, wire::Hello{.sandbox = wire::SandboxName{"team-a", "box"}});
  const auto first = co_await Raw::hear<wire::Welcome>(raw);
  co_await Raw::say(raw, wire::Resume{.link = first->link});
  EXPECT_TRUE(co_await Raw::hear<wire::Resume>(raw));
  site.executor.cut();
  const auto second = co_await Raw::hear<wire::Welcome>(raw);
  EXPECT_TRUE(second && second->resumed && second->link != first->link);
  if (!second) co_return;
  // All of this was said before the second welcome was read.
  co_await Raw::say(raw, wire::Request{.id = 1, .op = "add", .args = {{"count", 1}}, .seq = 1});
  co_await Raw::say(raw, wire::Resume{.link = first->link});
  co_await Raw::say(raw, wire::Credit{.stream = 1, .limit = 1});
  co_await Raw::say(raw, wire::Resume{.link = second->link, .requests = {1}});
  co_await Raw::say(raw, wire::Request{.id = 1, .op = "add", .args = {{"count", 1}}, .seq = 1});
  const auto reply = co_await Raw::hear<wire::Reply>(raw);
  EXPECT_TRUE(reply && reply->ok);
  EXPECT_EQ(site.executor.added, 1);
}
TEST(Carriers, DropWhatWasMeantForALinkBefore) { aio::testing::tell(be_late); }

aio::Task<> lose_the_incarnation(Site& site) {
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  site.executor.resumed({"uid-1", 3, 5, 8});
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness, 2));
  const auto welcome = harness.all<wire::Welcomed>().back().welcome;
  EXPECT_FALSE(welcome.resumed);
  EXPECT_EQ(welcome.why, wire::NotResumed::kLost);
  EXPECT_EQ(site.metric(R"(sandfleet_agentd_welcomes_total{session="lost"})"), "1");
  EXPECT_EQ(welcome.incarnation, 5);
  EXPECT_EQ(site.ways.asked, 2) << "the old way's token is of another run";
  EXPECT_EQ(harness.left(), "");
}
// covers: 4.7 W4
TEST(Carriers, TellTheHarnessThatItsSessionWasLost) { aio::testing::tell(lose_the_incarnation); }

aio::Task<> see_the_name_pass_on(Site& site) {
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  auto& other = site.other.emplace(site.loop.executor(), wire::Identity{"uid-2", 1, 1, 1});
  site.ways.answer = [&] { return other.way(); };
  site.executor.resumed({"uid-1", 4, 5, 8});  // It lets nobody in by the way of before.
  ask(harness, add(1));
  EXPECT_TRUE(co_await Harness::heard<wire::Closed>(harness));
  EXPECT_EQ(harness.left(), "denied");
  EXPECT_THAT(message(harness), HasSubstr("team-a/box was deleted, and another has its name"));
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Closed>(harness, 2));
  EXPECT_EQ(harness.left(), "denied") << "a new link of the same harness";
  EXPECT_EQ(other.dialled, 0);
  Harness& newcomer = site.harness();
  site.link(newcomer);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(newcomer));
}
TEST(Carriers, LetNoHarnessIntoAnotherSandboxOfTheSameName) {
  aio::testing::tell(see_the_name_pass_on);
}

aio::Task<> hear_of_the_other_at_a_check(Site& site) {
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  auto& other = site.other.emplace(site.loop.executor(), wire::Identity{"uid-2", 1, 1, 1});
  site.ways.answer = [&] { return other.way(); };
  EXPECT_TRUE(co_await Harness::heard<wire::Closed>(harness));
  EXPECT_EQ(harness.left(), "denied");
  EXPECT_EQ(other.dialled, 0);
}
TEST(Carriers, EndWhereAnotherSandboxHasTheNameByTheNextCheck) {
  Site site({}, {.ask_every = 50ms, .ask_after_silence = 50ms});
  aio::testing::run(site.loop, hear_of_the_other_at_a_check(site));
}

aio::Task<> take_over(Site& site) {
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  const auto older = harness.stream;
  site.executor.cut();  // So that the older one dials anew just now.
  ask(harness, echo("from the newer link"));
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Answered>(harness));
  EXPECT_TRUE(harness.all<wire::Welcomed>().back().welcome.resumed);
  EXPECT_TRUE(co_await eventually([&] { return site.carriers->size() == 1; }));
  EXPECT_FALSE(older->open());
  EXPECT_EQ(site.metric(R"(sandfleet_agentd_closes_total{reason="replaced"})"), "1");
}
// covers: 4.7
TEST(Carriers, LetTheNewestLinkHaveItsSession) { aio::testing::tell(take_over); }

// --- Standing still.

aio::Task<> pause_and_run_again(Site& site) {
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  site.directory.tell(Standing::kPaused);
  site.executor.quiesce();
  EXPECT_TRUE(co_await eventually([&] { return site.executor.links() == 0; }));
  site.executor.resumed({"uid-1", 3, 4, 8});
  site.directory.tell(Standing::kRunning);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness, 2));
  EXPECT_TRUE(harness.all<wire::Welcomed>().back().welcome.resumed);
  EXPECT_EQ(site.ways.asked, 2) << "asking may wake what is to sleep";
  EXPECT_EQ(harness.left(), "");
}
// covers: 4.7
TEST(Carriers, RestWhileTheSandboxIsPaused) { aio::testing::tell(pause_and_run_again); }

Answer still_paused() { return NoWay{wire::NoEntry::kPaused, "team-a/box is paused"}; }

aio::Task<> want_something_while_paused(Site& site) {
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  site.executor.quiesce();
  EXPECT_TRUE(co_await eventually([&] { return site.executor.links() == 0; }));
  site.directory.tell(Standing::kPaused);
  site.ways.answer = [&]() -> Answer {  // It is woken by the question, which takes a while.
    if (site.ways.asked == 2) return NoWay{wire::NoEntry::kNotReady, "it is on its way", 50ms};
    site.executor.resumed({"uid-1", 3, 4, 8});
    return site.executor.way();
  };
  ask(harness, echo("wake up"));
  EXPECT_TRUE(co_await Harness::heard<wire::Answered>(harness));
  EXPECT_EQ(site.ways.asked, 3);
}
TEST(Carriers, AskForAPausedSandboxWhenTheHarnessWantsSomething) {
  aio::testing::tell(want_something_while_paused);
}

// The watch tells, and whoever asks is given the way.
void run_again(Site& site) {
  site.ways.answer = [&] { return site.executor.way(); };
  site.executor.resumed({"uid-1", 3, 4, 8});
  site.directory.tell(Standing::kRunning);
}

// The harness has asked, and the executor, which has read it, has not answered.
aio::Task<> ask_in_vain(Site& site, Harness& harness, wire::Call call) {
  const int before = site.executor.silent;
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  ask(harness, std::move(call));
  EXPECT_TRUE(co_await eventually([&] { return site.executor.silent > before; }));
}
// Whoever asks for the way wakes it.
void pause_until_asked_for(Site& site) {
  site.directory.tell(Standing::kPaused);
  site.ways.answer = [&]() -> Answer {
    site.executor.resumed({"uid-1", 3, 4, 8});
    return site.executor.way();
  };
  site.executor.quiesce();
}
wire::Call wait_for_the_end(std::optional<std::int64_t> timeout_ms = {}) {
  return {
      .op = std::string(wire::WaitArgs::kOp),
      .args = to_json(wire::WaitArgs{.handle = std::string(32, '0'), .timeout_ms = timeout_ms})};
}
wire::Call follow() {
  return {.op = std::string(wire::ReadOutputArgs::kOp),
          .args = to_json(wire::ReadOutputArgs{.handle = std::string(32, '0'), .wait_ms = 60'000})};
}
wire::Call watch() {
  return {.op = std::string(wire::WatchArgs::kOp), .args = {{"path", "/work"}}};
}
const wire::Call kSilence{.op = "silence", .args = {{"like", wire::WaitArgs::kOp}}};

// For all that is known here, the executor may not have read what was asked.
aio::Task<> want_something_at_the_last_moment(Site& site) {
  Harness& harness = site.harness();
  co_await ask_in_vain(site, harness, kSilence);  // It only speaks of a wait.
  pause_until_asked_for(site);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness, 2));
  EXPECT_EQ(site.ways.asked, 2);
}
TEST(Carriers, AskForWhatPausedBeforeItAnsweredTheHarness) {
  aio::testing::tell(want_something_at_the_last_moment);
}

// One that waits for others has no reply for long, and still has one to come once another, who
// wants something, has woken the sandbox.
aio::Task<> wait_for_others(Site& site, wire::Call call) {
  Harness& waiting = site.harness();
  co_await ask_in_vain(site, waiting, std::move(call));
  Harness& wanting = site.harness();
  co_await ask_in_vain(site, wanting, kSilence);
  pause_until_asked_for(site);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(wanting, 2));
  EXPECT_EQ(site.ways.asked, 3)
      << "each asked once to begin with, and one because it wants something";
  EXPECT_EQ(waiting.all<wire::Welcomed>().size(), 1u);
  site.directory.tell(Standing::kRunning);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(waiting, 2));
}
TEST(Carriers, RestWhileTheHarnessOnlyWaitsForOthers) {
  for (const wire::Call& call : {wait_for_the_end(), wait_for_the_end(60'000), follow(), watch()}) {
    SCOPED_TRACE(call.op);
    Site site;
    aio::testing::run(site.loop, wait_for_others(site, call));
  }
}

// A harness that has got in, and whose sandbox has been paused since.
aio::Task<> get_in(Site& site, Raw& raw) {
  co_await Raw::say(raw, wire::Hello{.sandbox = wire::SandboxName{"team-a", "box"}});
  const auto welcome = co_await Raw::hear<wire::Welcome>(raw);
  co_await Raw::say(raw, wire::Resume{.link = welcome ? welcome->link : ""});
  EXPECT_TRUE(co_await Raw::hear<wire::Resume>(raw));
  EXPECT_EQ(site.ways.asked, 1);
}
aio::Task<> get_in_before_it_pauses(Site& site, Raw& raw) {
  co_await get_in(site, raw);
  pause_until_asked_for(site);
  EXPECT_TRUE(co_await eventually([&] { return site.executor.links() == 0; }));
}
// Once it has said that, agentd has heard it.
aio::Task<> say_and_be_heard(Raw& raw, wire::Message message) {
  co_await Raw::say(raw, std::move(message));
  co_await Raw::say(raw, wire::Ping{});
  EXPECT_TRUE(co_await Raw::hear<wire::Pong>(raw));
}
aio::Task<bool> welcomed_again(Raw& raw) {
  const auto welcome = co_await aio::within(Raw::hear<wire::Welcome>(raw), 20s);
  co_return welcome && *welcome && (*welcome)->resumed;
}

aio::Task<> move_bytes_while_paused(Site& site, wire::Message message) {
  Raw raw{site.connect()};
  co_await get_in_before_it_pauses(site, raw);
  co_await Raw::say(raw, std::move(message));
  EXPECT_TRUE(co_await welcomed_again(raw));
  EXPECT_EQ(site.ways.asked, 2);
}
TEST(Carriers, AskForAPausedSandboxWhenTheHarnessWouldMoveBytes) {
  const wire::Message wishes[] = {wire::Data{.stream = 1, .payload = "typed"},
                                  wire::Data{.stream = 1, .end = true},
                                  wire::Credit{.stream = 1, .limit = 1 << 20}};
  for (const wire::Message& message : wishes) {
    SCOPED_TRACE(message.index());
    Site site;
    aio::testing::run(site.loop, move_bytes_while_paused(site, message));
  }
}

aio::Task<> move_bytes_at_the_last_moment(Site& site) {
  Raw raw{site.connect()};
  co_await get_in(site, raw);
  co_await say_and_be_heard(raw, wire::Credit{.stream = 1, .limit = 1 << 20});
  pause_until_asked_for(site);
  EXPECT_TRUE(co_await welcomed_again(raw));
  EXPECT_EQ(site.ways.asked, 2);
}
TEST(Carriers, AskForWhatPausedBeforeItCanHaveReadTheBytesOfTheHarness) {
  aio::testing::tell(move_bytes_at_the_last_moment);
}

aio::Task<> want_nothing_while_paused(Site& site, wire::Message message) {
  Raw raw{site.connect()};
  co_await get_in_before_it_pauses(site, raw);
  site.ways.answer = still_paused;
  co_await say_and_be_heard(raw, std::move(message));
  run_again(site);
  EXPECT_TRUE(co_await welcomed_again(raw));
  EXPECT_EQ(site.ways.asked, 2) << "only once it was seen to run";
}
TEST(Carriers, RestWhileTheHarnessOnlyKnowsWhatItHasRead) {
  const wire::Message others[] = {wire::Credit{.stream = 1, .limit = 1 << 20, .ended = true},
                                  wire::Ping{}, wire::Pong{}};
  for (const wire::Message& message : others) {
    SCOPED_TRACE(message.index());
    Site site;
    aio::testing::run(site.loop, want_nothing_while_paused(site, message));
  }
}

// Who moves bytes through a pause that is its owner's waits for its end, and asks once.
aio::Task<> move_bytes_in_vain(Site& site) {
  Raw raw{site.connect()};
  co_await get_in_before_it_pauses(site, raw);
  site.ways.answer = still_paused;
  co_await Raw::say(raw, wire::Data{.stream = 1, .payload = "one"});
  EXPECT_TRUE(co_await eventually([&] { return site.ways.asked == 2; }));
  for (int i = 0; i < 10; ++i)
    co_await say_and_be_heard(raw, wire::Data{.stream = 1, .offset = 3, .payload = "two"});
  run_again(site);
  EXPECT_TRUE(co_await welcomed_again(raw));
  EXPECT_EQ(site.ways.asked, 3);
}
TEST(Carriers, LetBytesWaitWhereNobodyWakesWhatIsPaused) { aio::testing::tell(move_bytes_in_vain); }

aio::Task<> read_on_after_a_pause(Site& site) {
  constexpr std::int64_t kBytes = 6 << 20;
  Harness& harness = site.harness();
  site.link(harness);
  const auto stream =
      harness.session.ask({.op = "pattern", .args = {{"bytes", kBytes}}, .down = true});
  const auto is_full = [&] {
    return harness.session.stream_bytes_held() == wire::stream_allowance(0);
  };
  EXPECT_TRUE(co_await eventually(is_full)) << harness.session.stream_bytes_held();
  pause_until_asked_for(site);
  EXPECT_TRUE(co_await eventually([&] { return site.executor.links() == 0; }));
  Downloaded got;
  EXPECT_TRUE(co_await eventually([&] {
    take_all(harness, *stream, got);
    return got.ended;
  })) << got.bytes;
  EXPECT_TRUE(got.exact);
  EXPECT_EQ(got.bytes, kBytes);
  EXPECT_EQ(site.ways.asked, 2);
}
TEST(Carriers, GoOnToTheByteWhenAReaderReadsOnAfterAPause) {
  aio::testing::tell(read_on_after_a_pause);
}

// The next question would be put in a minute, but the watch says that it runs.
aio::Task<> be_woken(Site& site) {
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  site.executor.quiesce();
  EXPECT_TRUE(co_await eventually([&] { return site.executor.links() == 0; }));
  site.directory.tell(Standing::kPaused);
  site.ways.answer = [] { return NoWay{wire::NoEntry::kNotReady, "it is being woken", 60s}; };
  ask(harness, echo("wake up"));
  EXPECT_TRUE(co_await eventually([&] { return site.ways.asked == 2; }));
  run_again(site);
  EXPECT_TRUE(co_await Harness::heard<wire::Answered>(harness));
  EXPECT_EQ(site.ways.asked, 3);
}
TEST(Carriers, AskAsSoonAsWhatTheyHaveWokenRuns) { aio::testing::tell(be_woken); }

aio::Task<> want_in_vain(Site& site) {
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  site.executor.quiesce();
  EXPECT_TRUE(co_await eventually([&] { return site.executor.links() == 0; }));
  site.directory.tell(Standing::kPaused);
  site.ways.answer = still_paused;
  ask(harness, echo("wake up"));
  EXPECT_TRUE(co_await Harness::heard<wire::Closed>(harness));
  EXPECT_EQ(harness.left(), "quiesce");
  EXPECT_THAT(message(harness), HasSubstr("sandfleet resume team-a/box"));
}
TEST(Carriers, SayHowToResumeWhatNobodyWakes) { aio::testing::tell(want_in_vain); }

// --- Who is not let in.

// What a harness hears that says `bytes` first.
aio::Task<wire::Close> answer_to(Site& site, std::string bytes) {
  const auto stream = site.connect();
  EXPECT_TRUE(co_await stream->write(bytes));
  wire::FrameReader reader;
  char piece[4096];
  for (;;) {
    const auto got = co_await stream->read(piece, sizeof piece);
    if (!got || *got == 0) co_return wire::Close{wire::CloseReason::kOther, "it just hung up"};
    reader.add({piece, *got});
    auto frame = reader.next();
    if (!frame || !*frame) continue;
    const auto said = wire::to_message(**std::move(frame));
    const auto* close = said ? std::get_if<wire::Close>(&*said) : nullptr;
    co_return close ? *close : wire::Close{wire::CloseReason::kOther, "no close"};
  }
}
std::string hello(wire::Hello hello) { return wire::encode(wire::to_frame(std::move(hello))); }

aio::Task<> say_what_is_wrong(Site& site) {
  const wire::SandboxName box{"team-a", "box"};
  struct Case {
    std::string bytes;
    wire::CloseReason reason;
    const char* message;
  };
  const Case cases[] = {
      {hello({}), wire::CloseReason::kProtocol, "names no sandbox"},
      {hello({.protocol = {2, 3}, .sandbox = box}), wire::CloseReason::kVersion, "version 1"},
      {hello({.sandbox = box, .claims = "sf1.e30", .nonce = std::string(32, '0')}),
       wire::CloseReason::kDenied, "a token that is shown"},
      {wire::encode(wire::to_frame(wire::Ping{})), wire::CloseReason::kProtocol,
       "did not begin with hello"},
      {std::string("GET / HTTP/1.1\r\n\r\n"), wire::CloseReason::kProtocol, "too long"},
      {hello({.sandbox = box}) + std::string("GET / HTTP/1.1\r\n\r\n"),
       wire::CloseReason::kProtocol, "too long"},
      {hello({.sandbox = box}) + hello({.sandbox = box}), wire::CloseReason::kProtocol,
       "handshake where a session is open"},
  };
  site.ways.answer = [] { return NoWay{wire::NoEntry::kNotReady, "later"}; };
  for (const Case& one : cases) {
    const wire::Close close = co_await answer_to(site, one.bytes);
    EXPECT_EQ(close.reason, one.reason) << one.message << ", but " << close.message;
    EXPECT_THAT(close.message, HasSubstr(one.message));
  }
  EXPECT_EQ(site.executor.dialled, 0);
}
TEST(Carriers, SayWhatIsWrongWithAHarness) { aio::testing::tell(say_what_is_wrong); }

aio::Task<> refuse(Site& site) {
  const std::pair<NoWay, wire::CloseReason> cases[] = {
      {{wire::NoEntry::kDenied, "may not"}, wire::CloseReason::kDenied},
      {{wire::NoEntry::kPaused, "is paused"}, wire::CloseReason::kQuiesce},
      {{wire::NoEntry::kNotReady, "is not ready"}, wire::CloseReason::kBusy},
  };
  for (const auto& [no_way, reason] : cases) {
    site.ways.answer = [&no_way] { return no_way; };
    const auto close =
        co_await answer_to(site, hello({.sandbox = wire::SandboxName{"team-a", "box"}}));
    EXPECT_EQ(close.reason, reason) << close.message;
    EXPECT_THAT(close.message, HasSubstr(no_way.message));
  }
}
TEST(Carriers, PassOnWhyThereIsNoWay) {
  Site site({}, {.first_welcome = 300ms});
  aio::testing::run(site.loop, refuse(site));
}

aio::Task<> meet_nobody(Site& site) {
  bool nobody = true;
  site.ways.answer = [&] {
    Way way = site.executor.way();
    if (nobody) way.url = "http://127.0.0.1:1";
    return way;
  };
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await eventually([&] { return site.ways.asked == 1; }));
  EXPECT_FALSE(site.ways.last_failed) << "none was tried";
  EXPECT_TRUE(co_await eventually([&] { return site.ways.last_failed.has_value(); }));
  EXPECT_EQ(site.ways.last_failed, (RunOfWay{"uid-1", 3, 7}));
  nobody = false;
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  const int asked = site.ways.asked;
  site.executor.cut();
  EXPECT_TRUE(co_await eventually([&] { return site.executor.dialled > 1; }));
  EXPECT_EQ(site.ways.asked, asked) << "a link that was cut has failed nobody yet";
}
TEST(Carriers, TellThatNobodyWasMetWhereAWayLed) { aio::testing::tell(meet_nobody); }

aio::Task<> meet_an_impostor(Site& site) {
  // It speaks as an executor does, but is that of another sandbox.
  auto& other = site.other.emplace(site.loop.executor(), wire::Identity{"uid-2", 1, 1, 1});
  site.ways.answer = [&] {
    Way way = site.executor.way();
    way.url = other.way().url;
    return way;
  };
  const auto close =
      co_await answer_to(site, hello({.sandbox = wire::SandboxName{"team-a", "box"}}));
  EXPECT_EQ(close.reason, wire::CloseReason::kDenied) << close.message;
  EXPECT_EQ(other.host.sessions(), 0u);
}
TEST(Carriers, DoNotGetInWhereTheirTokenIsNotKnown) {
  Site site({}, {.first_welcome = 300ms});
  aio::testing::run(site.loop, meet_an_impostor(site));
}

// Takes any claims, and answers with a proof that it made up.
aio::Task<> pretend(std::shared_ptr<aio::HttpExchange> exchange) {
  auto socket = co_await aio::WebSocket::accept(
      std::move(exchange),
      {.subprotocol = wire::kSessionSubprotocol, .message_bytes_max = wire::kFrameBytesMax});
  if (!socket) co_return;
  static_cast<void>(co_await (*socket)->read());
  const wire::Challenge challenge{std::string(32, '0'), std::string(64, '0')};
  static_cast<void>(co_await (*socket)->write(wire::encode(wire::to_frame(challenge))));
  const auto answer = co_await (*socket)->read();
  EXPECT_TRUE(answer && answer->find("impostor") != std::string::npos);
}
aio::Task<> meet_a_pretender(Site& site) {
  aio::HttpServer pretender(site.loop.executor(), pretend);
  const int port = *pretender.listen("127.0.0.1", 0);
  site.ways.answer = [&] {
    Way way = site.executor.way();
    way.url = "http://127.0.0.1:" + std::to_string(port);
    return way;
  };
  const auto close =
      co_await answer_to(site, hello({.sandbox = wire::SandboxName{"team-a", "box"}}));
  EXPECT_EQ(close.reason, wire::CloseReason::kBusy);
  EXPECT_THAT(close.message, HasSubstr("has not its key"));
  EXPECT_NE(site.metric(R"(sandfleet_agentd_dials_total{attempt="first",result="impostor"})"),
            "none");
}
TEST(Carriers, ProveNothingToAnImpostor) {
  Site site({}, {.first_welcome = 300ms});
  aio::testing::run(site.loop, meet_a_pretender(site));
}

// --- Bounds.

constexpr RosterLimits kNarrow{.greeting_max = 16, .links_max = 32, .parting_max = 8};
constexpr std::size_t kCarriersMax = 32 + 2 * (16 + 8);

aio::Task<> flood(Site& site) {
  std::vector<std::shared_ptr<aio::Stream>> silent;
  for (int i = 0; i < 3'000; ++i) {
    silent.push_back(site.connect());
    if (i % 100 == 0) co_await aio::sleep_for(1ms);
  }
  EXPECT_LE(site.carriers->size(), kCarriersMax);
  Harness& harness = site.harness();
  ask(harness, echo("let me in"));
  EXPECT_TRUE(co_await eventually([&] { return site.carriers->size() < kCarriersMax; }));
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Answered>(harness));
  EXPECT_TRUE(co_await eventually([&] { return site.carriers->size() == 1; }))
      << "they were waited for too long";
}
TEST(Carriers, OutliveThousandsThatSayNothing) {
  Site site(kNarrow, {.hello = 500ms, .hang_up = 100ms, .last_word = 200ms});
  aio::testing::run(site.loop, flood(site));
}

aio::Task<> come_too_many(Site& site) {
  Harness &first = site.harness(), &second = site.harness();
  site.link(first);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(first));
  site.link(second);
  EXPECT_TRUE(co_await Harness::heard<wire::Closed>(second));
  EXPECT_EQ(second.left(), "busy");
  EXPECT_EQ(second.all<wire::Closed>().at(0).close.retry_after_ms, 5'000);
  EXPECT_EQ(site.metric(R"(sandfleet_agentd_closes_total{reason="busy"})"), "1");
}
// covers: W7
TEST(Carriers, TellWhoIsOneTooManyToComeLater) {
  Site site({.links_each_max = 1});
  aio::testing::run(site.loop, come_too_many(site));
}

aio::Task<> stall(Site& site) {
  Harness &stalled = site.harness(), &other = site.harness();
  site.link(stalled);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(stalled));
  stalled.stalls = true;
  EXPECT_TRUE(stalled.session.ask(
      {.op = "pattern", .args = {{"bytes", std::int64_t{1} << 30}}, .down = true}));
  stalled.wake();
  site.link(other);
  for (std::size_t i = 1; i <= 50; ++i) {
    ask(other, echo("not held up"));
    EXPECT_TRUE(co_await Harness::heard<wire::Answered>(other, i));
  }
  const std::string carried =
      site.metric(R"(sandfleet_agentd_bytes_total{direction="to_harness"})");
  EXPECT_LT(std::stod(carried), 4e6) << "no more than was granted and fits in between";
}
// covers: O5
TEST(Carriers, HoldNobodyUpForOneThatDoesNotRead) { aio::testing::tell(stall); }

aio::Task<> say_nothing_more(Site& site) {
  const auto close = co_await answer_to(site, "");
  EXPECT_EQ(close.reason, wire::CloseReason::kDenied);
  EXPECT_THAT(close.message, HasSubstr("too long to say hello"));
}
TEST(Carriers, WaitOnlySoLongForHello) {
  Site site({}, {.hello = 50ms});
  aio::testing::run(site.loop, say_nothing_more(site));
}

// --- Access.

aio::Task<> lower_the_ceiling(Site& site) {
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  EXPECT_TRUE(co_await eventually([&] { return site.ways.asked >= 3; }));
  EXPECT_TRUE(harness.all<wire::CredentialRenewed>().empty()) << "that is agentd's own affair";
  site.ways.answer = [&] { return site.executor.way(wire::Ceiling::kReadOnly); };
  EXPECT_TRUE(co_await Harness::heard<wire::CredentialRenewed>(harness));
  EXPECT_EQ(harness.all<wire::CredentialRenewed>().at(0).renewed.ceiling, wire::Ceiling::kReadOnly);
  EXPECT_EQ(site.executor.dialled, 1);
  site.ways.answer = [] { return NoWay{wire::NoEntry::kUnavailable, "away"}; };
  const int asked = site.ways.asked;
  EXPECT_TRUE(co_await eventually([&] { return site.ways.asked > asked + 1; }));
  EXPECT_EQ(harness.left(), "") << "silence is no refusal";
  site.ways.answer = [] { return NoWay{wire::NoEntry::kDenied, "may no longer"}; };
  EXPECT_TRUE(co_await Harness::heard<wire::Closed>(harness));
  EXPECT_EQ(harness.left(), "expired");
  EXPECT_THAT(message(harness), HasSubstr("may no longer"));
}
TEST(Carriers, AskAgainAndAgainWhetherAHarnessMay) {
  Site site({}, {.ask_every = 100ms, .ask_after_silence = 50ms, .look = 20ms});
  aio::testing::run(site.loop, lower_the_ceiling(site));
}

aio::Task<> bring_another_token(Site& site) {
  Harness& harness = site.harness();
  site.link(harness, "the first");
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  EXPECT_EQ(site.ways.last_token, "the first");
  co_await eventually([&] { return site.executor.host.sessions() == 1; });
  ask(harness, echo("once the link is open"));
  EXPECT_TRUE(co_await Harness::heard<wire::Answered>(harness));
  const std::string second = jwt(site.clock.wall() + 10min);
  harness.session.renew(std::optional<std::string>(second));
  harness.wake();
  EXPECT_TRUE(co_await Harness::heard<wire::CredentialRenewed>(harness));
  EXPECT_EQ(site.ways.last_token, second);
  const auto renewed = harness.all<wire::CredentialRenewed>().at(0).renewed;
  EXPECT_GT(renewed.expires_ms, 9 * 60'000);
  site.ways.answer = [] { return NoWay{wire::NoEntry::kUnavailable, "away"}; };
  harness.session.renew(std::optional<std::string>("a third"));
  harness.wake();
  EXPECT_TRUE(co_await Harness::heard<wire::CredentialRenewed>(harness, 2));
  EXPECT_EQ(site.ways.last_token, "a third");
}
TEST(Carriers, TakeTheNextTokenOfAHarness) { aio::testing::tell(bring_another_token); }

aio::Task<> renew_while_it_is_asked(Site& site) {
  Harness& harness = site.harness();
  site.link(harness, "the first");
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  site.ways.answer = [&]() -> Answer {
    if (site.ways.last_token == "the first") return NoWay{wire::NoEntry::kDenied, "it has ended"};
    return site.executor.way();
  };
  site.ways.holds_back = true;
  const int asked = site.ways.asked;
  EXPECT_TRUE(co_await eventually([&] { return site.ways.asked > asked; }));
  EXPECT_EQ(site.ways.last_token, "the first");
  harness.session.renew(std::optional<std::string>("the second"));
  ask(harness, echo("behind the next token"));
  EXPECT_TRUE(co_await Harness::heard<wire::Answered>(harness));
  site.ways.holds_back = false;
  EXPECT_TRUE(co_await Harness::heard<wire::CredentialRenewed>(harness)) << message(harness);
  EXPECT_EQ(site.ways.last_token, "the second");
  EXPECT_EQ(harness.left(), "");
  site.ways.answer = [] { return NoWay{wire::NoEntry::kDenied, "may no longer"}; };
  EXPECT_TRUE(co_await Harness::heard<wire::Closed>(harness));
  EXPECT_EQ(harness.left(), "expired") << "a no to the token of now is one";
}
TEST(Carriers, TakeNoRefusalOfATokenThatWasReplacedMeanwhile) {
  Site site({}, {.ask_every = 50ms, .ask_after_silence = 20ms, .look = 20ms});
  aio::testing::run(site.loop, renew_while_it_is_asked(site));
}

// Why the link of a harness ended that renewed by it.
aio::Task<std::string> refusal_of(Site& site, std::string token) {
  Harness& harness = site.harness();
  site.link(harness, "the first");
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  ask(harness, echo("once the link is open"));
  EXPECT_TRUE(co_await Harness::heard<wire::Answered>(harness));
  harness.session.renew(std::optional<std::string>(std::move(token)));
  harness.wake();
  EXPECT_TRUE(co_await Harness::heard<wire::Closed>(harness));
  co_return harness.left() + ": " + message(harness);
}

aio::Task<> bring_a_token_that_is_no_good(Site& site) {
  site.ways.answer = [&]() -> Answer {
    if (site.ways.last_token == "refused") return NoWay{wire::NoEntry::kDenied, "may not"};
    const bool is_anothers = site.ways.last_token == "another's";
    return site.executor.way(wire::Ceiling::kReadOnly, is_anothers ? "another" : "harness");
  };
  EXPECT_EQ(co_await refusal_of(site, "refused"), "denied: may not");
  EXPECT_EQ(co_await refusal_of(site, "another's"), "denied: the token is another's");
}
TEST(Carriers, RefuseANextTokenThatIsNoGood) { aio::testing::tell(bring_a_token_that_is_no_good); }

// The next credential is there before the answer to each question.
aio::Task<> renew_again_and_again(Site& site) {
  Harness& harness = site.harness();
  site.link(harness, "the first");
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  site.ways.answer = [&] {
    site.ways.holds_back = true;
    return NoWay{wire::NoEntry::kDenied, "may not"};
  };
  site.ways.holds_back = true;
  const int asked = site.ways.asked;
  for (const int questions : {1, 2}) {
    EXPECT_TRUE(co_await eventually([&] { return site.ways.asked == asked + questions; }));
    harness.session.renew(std::optional("token " + std::to_string(questions)));
    ask(harness, echo("behind the next token"));
    EXPECT_TRUE(
        co_await Harness::heard<wire::Answered>(harness, static_cast<std::size_t>(questions)));
    site.ways.holds_back = false;
  }
  EXPECT_TRUE(co_await Harness::heard<wire::Closed>(harness));
  EXPECT_EQ(harness.left() + ": " + message(harness), "denied: may not");
}
TEST(Carriers, TellWhoBringsTokenUponTokenThatTheyAreRefused) {
  Site site({}, {.ask_every = 50ms, .ask_after_silence = 20ms, .look = 20ms});
  aio::testing::run(site.loop, renew_again_and_again(site));
}

aio::Task<> lose_the_link_before_the_answer(Site& site) {
  Harness& harness = site.harness();
  site.link(harness, "the first");
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  ask(harness, echo("once the link is open"));
  EXPECT_TRUE(co_await Harness::heard<wire::Answered>(harness));
  site.ways.answer = [&]() -> Answer {  // Before the executor hears of the next token.
    if (site.ways.last_token == "the second" && site.executor.dialled == 1) site.executor.cut();
    return site.executor.way();
  };
  harness.session.renew(std::optional<std::string>("the second"));
  harness.wake();
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness, 2))
      << "which tells how long it is good";
  const int asked = site.ways.asked;
  EXPECT_TRUE(co_await eventually([&] { return site.ways.asked > asked + 2; }));
  EXPECT_TRUE(harness.all<wire::CredentialRenewed>().empty()) << "it did not ask for that";
}
TEST(Carriers, AnswerARenewalByTheWelcomeOfANewLink) {
  Site site({}, {.ask_every = 50ms, .ask_after_silence = 20ms, .look = 20ms});
  aio::testing::run(site.loop, lose_the_link_before_the_answer(site));
}

aio::Task<> show_what_the_door_asks_for(Site& site) {
  site.caller.token = "a secret of this door";
  for (const auto& shown : {std::optional<std::string>(), std::optional<std::string>("another")}) {
    const auto close = co_await answer_to(
        site, hello({.sandbox = wire::SandboxName{"team-a", "box"}, .token = shown}));
    EXPECT_EQ(close.reason, wire::CloseReason::kDenied);
    EXPECT_THAT(close.message, HasSubstr("token that this agentd asks for"));
  }
  EXPECT_EQ(site.ways.asked, 0);
  Harness& harness = site.harness();
  ask(harness, echo("let me in"));
  site.link(harness, site.caller.token);
  EXPECT_TRUE(co_await Harness::heard<wire::Answered>(harness));
  EXPECT_FALSE(site.ways.last_token) << "it goes no further";
  harness.session.renew(site.caller.token);
  harness.wake();
  EXPECT_TRUE(co_await Harness::heard<wire::CredentialRenewed>(harness));
  EXPECT_FALSE(site.ways.last_token);
  harness.session.renew(std::optional<std::string>("another"));
  harness.wake();
  EXPECT_TRUE(co_await Harness::heard<wire::Closed>(harness));
  EXPECT_EQ(harness.left(), "denied");
}
TEST(Carriers, LetInWhoShowsTheTokenOfItsDoor) { aio::testing::tell(show_what_the_door_asks_for); }

aio::Task<> take_by_tls(Site& site, std::shared_ptr<aio::Stream> stream, base::Certified identity) {
  auto secured = co_await aio::TlsServer::with({.identity = identity})->secure(stream, 60s);
  EXPECT_TRUE(secured);
  if (secured) site.carriers->carry(std::move(secured->stream), {.name = "over TLS"});
}
aio::Task<> dial_by_tls(std::shared_ptr<aio::Stream>& stream, std::string authority) {
  auto secured = co_await aio::TlsClient::with({.authorities = authority})
                     ->secure(std::move(stream), "127.0.0.1", 60s);
  EXPECT_TRUE(secured);
  if (secured) stream = *secured;
}
aio::Task<> carry_over_tls(Site& site) {
  const auto now = site.clock.wall();
  const auto authority = *base::make_authority({"authority", {}, now - 1h, now + 1h});
  const auto identity = *base::issue(authority, {"agentd", {"127.0.0.1"}, now - 1h, now + 1h});
  int ends[2] = {-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  auto theirs = aio::Stream::over(site.loop.executor(), base::Fd(ends[0]));
  auto ours = aio::Stream::over(site.loop.executor(), base::Fd(ends[1]));
  co_await aio::both(take_by_tls(site, theirs, identity), dial_by_tls(ours, authority.certificate));
  Harness& harness = site.harness();
  site.links.spawn(Harness::carry(harness, ours));
  const auto stream = harness.session.ask(
      {.op = "pattern", .args = {{"bytes", std::int64_t{3} << 20}}, .down = true});
  Downloaded got;
  while (!got.ended) {
    const std::size_t heard = harness.events.size();
    take_all(harness, *stream, got);
    if (harness.events.size() == heard) co_await aio::sleep_for(1ms);
  }
  EXPECT_TRUE(got.exact);
  EXPECT_EQ(got.bytes, 3 << 20);
}
TEST(Carriers, CarryOverTls) { aio::testing::tell(carry_over_tls); }

// --- The end.

aio::Task<> drain(Site& site) {
  Harness& harness = site.harness();
  site.link(harness);
  EXPECT_TRUE(co_await Harness::heard<wire::Welcomed>(harness));
  co_await site.carriers->drain(5s);
  EXPECT_EQ(site.carriers->size(), 0u);
  EXPECT_EQ(harness.left(), "shutdown");
  EXPECT_TRUE(harness.all<wire::Closed>().at(0).close.retry_after_ms);
  EXPECT_EQ(site.executor.host.sessions(), 1u) << "the next agentd goes on with it";
}
TEST(Carriers, TellHarnessesToComeAgainAtTheEnd) { aio::testing::tell(drain); }

}  // namespace
}  // namespace agentd
