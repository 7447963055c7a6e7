#include "executor/sessions/terminal_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "executor/sessions/testing/site.h"
#include "libs/wire/frames/terminal_operations.h"

namespace executor {
namespace {

using testing::Answer;
using testing::Asking;
using testing::Client;
using testing::Site;
using testing::Streamed;
using testing::tell_connected;
using wire::FailureCode;
using wire::WaitUntil;

constexpr std::string_view kPrompt = "ready> ";
constexpr char kJob[] = "stty size; sh -c 'echo ready; exec sleep 1000'";

// A shell in a terminal, and what its two ends are carried by.
struct Shell {
  std::string handle;
  std::uint32_t typed = 0, shown = 0;
  std::int64_t pid = 0;
  Streamed seen = {};
};

wire::SpawnArgs in_terminal(Site& site, std::vector<std::string> argv, Shell& shell) {
  wire::SpawnArgs args = site.command(std::move(argv));
  shell.typed = site.client.session.new_stream();
  shell.shown = site.client.session.new_stream();
  shell.handle = args.handle;
  args.in = wire::Pipe{shell.typed};
  args.out = wire::Collected{.bytes_max = 4 << 20, .stream = shell.shown};
  args.terminal = wire::TerminalSize{40, 160};
  args.env.emplace_back("TERM", "dumb");
  args.env.emplace_back("PS1", kPrompt);
  args.env.emplace_back("HISTFILE", std::nullopt);
  return args;
}

aio::Task<Shell> begin_shell(Site& site, bool detached = false) {
  Shell shell;
  // One that edits lines would paint them anew when its size changes.
  auto args = in_terminal(site, {"bash", "--noprofile", "--norc", "--noediting", "-i"}, shell);
  args.detached = detached;
  const auto spawned = co_await Client::ask(
      site.client, args,
      {.mutating = true, .to_client = {shell.shown}, .to_server = {shell.typed}});
  shell.pid = spawned.as<wire::SpawnArgs>().pid;
  co_return shell;
}

// Until `text` is the last that was shown.
aio::Task<> see(Site& site, Shell& shell, std::string text) {
  while (!shell.seen.ended && !shell.seen.bytes.ends_with(text))
    co_await Client::take(site.client, shell.shown, shell.seen, shell.seen.bytes.size() + 1);
  EXPECT_TRUE(shell.seen.bytes.ends_with(text)) << shell.seen.bytes;
}

aio::Task<> enter(Site& site, const Shell& shell, std::string line) {
  EXPECT_TRUE(co_await Client::put(site.client, shell.typed, line + "\n", false));
}

aio::Task<wire::ForegroundArgs::Ok> until_waiting(Site& site, const Shell& shell, bool waiting) {
  for (;;) {
    const auto answer = co_await Client::ask(site.client, wire::ForegroundArgs{shell.handle});
    const auto found = answer.as<wire::ForegroundArgs>();
    if (!answer.ok || found.input_waiting == waiting) co_return found;
    co_await aio::sleep_for(base::Milliseconds(2));
  }
}

// One life of a terminal, and all that was shown in it.
aio::Task<> live(Site& site, std::string& shown) {
  Client& client = site.client;
  Shell shell = co_await begin_shell(site);
  co_await see(site, shell, std::string(kPrompt));
  co_await Client::ask(client, wire::ResizeTerminalArgs{shell.handle, {50, 200}},
                       {.mutating = true});
  // It says when it takes signals: what a shell has just forked still has the shell's handlers.
  co_await enter(site, shell, kJob);
  co_await see(site, shell, "50 200\r\nready\r\n");
  const auto job = co_await until_waiting(site, shell, false);
  EXPECT_NE(job.process_group, shell.pid);
  const auto interrupted = co_await Client::ask(
      client, wire::SignalForegroundArgs{shell.handle, "SIGINT"}, {.mutating = true});
  EXPECT_EQ(interrupted.as<wire::SignalForegroundArgs>().process_group, job.process_group);
  co_await see(site, shell, std::string(kPrompt));
  EXPECT_EQ((co_await until_waiting(site, shell, true)).process_group, shell.pid);
  co_await enter(site, shell, "exit 3");
  co_await Client::take(client, shell.shown, shell.seen, SIZE_MAX);
  EXPECT_TRUE(shell.seen.ended);
  EXPECT_EQ(shell.seen.skipped, 0);
  shown = shell.seen.bytes;
  const auto over =
      (co_await testing::wait_until(client, shell.handle, WaitUntil::kEmpty)).as<wire::WaitArgs>();
  EXPECT_EQ(over.state.exit_code, 3);
  EXPECT_EQ(over.state.terminal, (wire::TerminalSize{50, 200}));
  EXPECT_EQ(site.left(), 0u);
}

const std::string kShown = std::string(kPrompt) + kJob + "\r\n50 200\r\nready\r\n^C\r\n" +
                           std::string(kPrompt) + "exit 3\r\nexit\r\n";
// What the kernel echoes of an interrupt depends on who has the terminal's mode then.
std::string without_echo(std::string shown) {
  if (const auto at = shown.find("^C"); at != std::string::npos) shown.erase(at, 2);
  return shown;
}

aio::Task<> live_once(Site& site) {
  std::string shown;
  co_await live(site, shown);
  EXPECT_EQ(without_echo(shown), without_echo(kShown));
}
// covers: Y2 Y3 Y5
TEST(TerminalService, CarriesAShellFromItsFirstPromptToItsEnd) { tell_connected(live_once); }

// Whichever frame the connection breaks at.
// covers: 4.7 4.8
TEST(TerminalService, LivesThroughACutAtEachFrame) {
  for (int last = 1, frames = 0; last > 0; ++frames) {
    Site site;
    int left = frames;
    site.client.cut = [&left](std::size_t) { return left-- == 0; };
    std::string shown;
    aio::testing::run(site.loop, testing::connected(site.client, live(site, shown)));
    EXPECT_EQ(without_echo(shown), without_echo(kShown)) << "cut at frame " << frames;
    last = left >= 0 ? 0 : 1;  // It was over before that frame.
    ASSERT_FALSE(HasFailure()) << frames;
  }
}

aio::Task<> count_what_is_on_its_way(Site& site) {
  Client& client = site.client;
  Shell shell = co_await begin_shell(site);
  co_await see(site, shell, std::string(kPrompt));
  co_await until_waiting(site, shell, true);
  const auto waiting = [&](std::int64_t typed) {
    return Client::ask(client, wire::ForegroundArgs{shell.handle, typed});
  };
  const std::string line = "cd /";
  const auto typed = static_cast<std::int64_t>(line.size() + 1);
  EXPECT_EQ((co_await waiting(typed)).as<wire::ForegroundArgs>(),
            (wire::ForegroundArgs::Ok{shell.pid, false}));
  EXPECT_EQ((co_await waiting(0)).as<wire::ForegroundArgs>().input_waiting, true);
  co_await enter(site, shell, line);
  co_await see(site, shell, line + "\r\n" + std::string(kPrompt));
  co_await until_waiting(site, shell, true);
  EXPECT_EQ((co_await waiting(typed)).as<wire::ForegroundArgs>().input_waiting, true);
  EXPECT_EQ((co_await waiting(typed + 1)).as<wire::ForegroundArgs>().input_waiting, false);
}
// covers: Y3
TEST(TerminalService, TakesNobodyForWaitingWhileWhatWasTypedIsOnItsWay) {
  tell_connected(count_what_is_on_its_way);
}

aio::Task<> come_back(Site& site) {
  Client& client = site.client;
  Shell shell = co_await begin_shell(site);
  co_await see(site, shell, std::string(kPrompt));
  constexpr std::size_t kWritten = 6 << 20;
  const std::string line = "stty -onlcr; PS1=; head -c 6291456 /dev/zero | tr '\\0' x; echo end";
  const auto all = static_cast<std::int64_t>((std::string(kPrompt) + line + "\r\n").size() +
                                             kWritten + std::string("end\n").size());
  co_await enter(site, shell, line);
  client.session.stop(shell.shown);
  client.said.notify_all();
  // Nobody looks, and it goes on.
  wire::ProcessState state;
  while (!state.exited && !(state.out && state.out->bytes >= all)) {
    co_await aio::sleep_for(base::Milliseconds(5));
    state = (co_await testing::wait_until(client, shell.handle, WaitUntil::kExit, 0))
                .as<wire::WaitArgs>()
                .state;
  }
  EXPECT_EQ(state.out->bytes, all);
  EXPECT_TRUE(state.out && state.out->lossy);
  for (const std::int64_t from : {std::int64_t{0}, state.out->bytes - 3}) {
    const std::uint32_t stream = client.session.new_stream();
    const auto attached = co_await testing::attach(client, shell.handle, {stream, from});
    const bool lossy = from == 0;
    EXPECT_EQ(attached.out, (wire::OutputAt{lossy ? state.out->bytes - (4 << 20) : from, lossy}));
    Streamed again;
    const auto wanted = static_cast<std::size_t>(state.out->bytes - attached.out->from);
    co_await Client::take(client, stream, again, wanted);
    EXPECT_EQ(again.skipped, 0);
    EXPECT_TRUE(again.bytes.ends_with("nd\n"));
  }
}
// covers: 4.7 4.8
TEST(TerminalService, GoesOnExactlyForWhoComesBackOrSaysWhatIsLost) { tell_connected(come_back); }

// Whoever comes next finds the shell as it was left: the variable that was set, the size.
aio::Task<> outlive(Site& site) {
  Shell shell = co_await begin_shell(site, true);
  co_await see(site, shell, std::string(kPrompt));
  co_await enter(site, shell, "kept=whole");
  co_await see(site, shell, "kept=whole\r\n" + std::string(kPrompt));
  site.client.session.finish();
  site.client.said.notify_all();

  Client& next = site.mate;
  site.tasks.spawn(Client::carry(next));
  const std::uint32_t typed = next.session.new_stream(), shown = next.session.new_stream();
  const auto attached = co_await testing::attach(next, shell.handle, {shown, 0}, typed);
  EXPECT_TRUE(attached.state.detached && !attached.state.exited);
  EXPECT_EQ(attached.state.terminal, (wire::TerminalSize{40, 160}));
  EXPECT_TRUE(co_await Client::put(next, typed, "echo \"<$kept>\"; exit 4\n", false));
  const auto all = co_await Client::all_of(next, shown);
  EXPECT_TRUE(all.bytes.starts_with(shell.seen.bytes)) << all.bytes;
  EXPECT_NE(all.bytes.find("<whole>"), std::string::npos) << all.bytes;
  const auto over = co_await testing::wait_until(next, shell.handle, WaitUntil::kEmpty);
  EXPECT_EQ(over.as<wire::WaitArgs>().state.exit_code, 4);
}
TEST(TerminalService, KeepsADetachedTerminalForWhoComesNext) { tell_connected(outlive); }

aio::Task<> name_the_shell(Site& site) {
  Shell shell;
  auto args = in_terminal(site, {"sh", "-c", "echo \"$SHELL\""}, shell);
  args.env.emplace_back("SHELL", "/bin/asked-for");
  co_await Client::ask(site.client, args,
                       {.mutating = true, .to_client = {shell.shown}, .to_server = {shell.typed}});
  EXPECT_EQ((co_await Client::all_of(site.client, shell.shown)).bytes, "/bin/asked-for\r\n");
}
TEST(TerminalService, LeavesTheShellToWhoNamesOne) { tell_connected(name_the_shell); }

// More was typed than a terminal takes that nobody reads: the signal comes all the same, but not
// before what was typed has had its time to go before it.
aio::Task<> interrupt_what_reads_nothing(Site& site) {
  Client& client = site.client;
  Shell shell;
  const auto args = in_terminal(
      site,
      // Whatever it does when the signal comes, it sees to its trap soon.
      {"sh", "-c", "trap 'echo interrupted; exit' INT; echo ready; while :; do sleep 0.1; done"},
      shell);
  co_await Client::ask(client, args,
                       {.mutating = true, .to_client = {shell.shown}, .to_server = {shell.typed}});
  co_await see(site, shell, "ready\r\n");
  constexpr std::int64_t kTyped = 200'000;
  client.session.append(shell.typed, std::string(kTyped, '\n'));
  const base::Moment asked = base::SystemClock().now();
  const auto sent = co_await Client::ask(
      client, wire::SignalForegroundArgs{shell.handle, "SIGINT", kTyped}, {.mutating = true});
  EXPECT_TRUE(sent.ok) << (sent.failure ? sent.failure->message : "");
  EXPECT_GE(base::SystemClock().now() - asked, kBehindTyped);
  co_await Client::take(client, shell.shown, shell.seen, SIZE_MAX);
  EXPECT_NE(shell.seen.bytes.find("interrupted\r\n"), std::string::npos);
}
// covers: Y2
TEST(TerminalService, SignalsBehindWhatWasTypedAsFarAsTheTerminalTakesThat) {
  tell_connected(interrupt_what_reads_nothing);
}

aio::Task<> refuse(Site& site) {
  Client& client = site.client;
  Shell shell = co_await begin_shell(site);
  co_await see(site, shell, std::string(kPrompt));
  const auto code_of_signal = [&](const char* signal) {
    return Client::ask(client, wire::SignalForegroundArgs{shell.handle, signal},
                       {.mutating = true});
  };
  EXPECT_EQ((co_await code_of_signal("SIGKILL")).code(), FailureCode::kConflict);
  EXPECT_EQ((co_await code_of_signal("SIGUSR1")).code(), FailureCode::kInvalid);
  EXPECT_EQ((co_await code_of_signal("SIGNOT")).code(), FailureCode::kInvalid);
  const auto narrow = Asking{.mode = wire::Ceiling::kReadOnly};
  EXPECT_EQ((co_await Client::ask(client, wire::ForegroundArgs{shell.handle}, narrow)).code(),
            FailureCode::kDenied);
  EXPECT_EQ((co_await Client::ask(client, wire::ForegroundArgs{"nobody-has-this-handle"})).code(),
            FailureCode::kNotFound);
  const auto plain = site.command({"sleep", "1000"});
  EXPECT_TRUE((co_await Client::ask(client, plain, {.mutating = true})).ok);
  EXPECT_EQ((co_await Client::ask(client, wire::ForegroundArgs{plain.handle})).code(),
            FailureCode::kInvalid);

  Shell other;
  auto mixed = in_terminal(site, {"bash"}, other);
  mixed.out = wire::Pipe{other.shown};
  EXPECT_EQ((co_await Client::ask(
                 client, mixed,
                 {.mutating = true, .to_client = {other.shown}, .to_server = {other.typed}}))
                .code(),
            FailureCode::kInvalid);

  co_await Client::ask(client, wire::TerminateArgs{shell.handle}, {.mutating = true});
  EXPECT_EQ((co_await code_of_signal("SIGINT")).code(), FailureCode::kConflict);
  EXPECT_EQ((co_await Client::ask(client, wire::ResizeTerminalArgs{shell.handle, {1, 1}},
                                  {.mutating = true}))
                .code(),
            FailureCode::kConflict);
  // What is typed now is not wanted, and that is said.
  while (!client.does_not_want(shell.typed)) co_await client.said.wait();
}
// covers: Y2 Y4
TEST(TerminalService, RefusesWhatCannotBeWithItsReason) { tell_connected(refuse); }

aio::Task<> tells_its_features(Site& site) {
  co_await Client::wait_for<wire::Welcomed>(site.client);
  const auto& features = site.client.find<wire::Welcomed>()->welcome.features;
  EXPECT_TRUE(std::ranges::count(features, "terminals"));
}
TEST(TerminalService, IsAmongTheFeatures) { tell_connected(tells_its_features); }

}  // namespace
}  // namespace executor
