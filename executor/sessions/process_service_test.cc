#include "executor/sessions/process_service.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "executor/confine/landlock.h"
#include "executor/sessions/testing/site.h"
#include "libs/base/awake_time.h"

// What is asked about processes, of real ones. What their streams carry: process_streams_test.cc.
namespace executor {
namespace {

using testing::Answer;
using testing::Asking;
using testing::Client;
using testing::Pipes;
using testing::Site;
using testing::tell_connected;
using testing::wait_until;
using wire::FailureCode;
using wire::WaitUntil;

constexpr Asking kMutating{.mutating = true};

aio::Task<> tell_the_ends_apart(Site& site) {
  // The command ends, and leaves one behind that holds its stdout open.
  auto args = site.shell("sleep 1000 & exit 3");
  Pipes ends;
  const Asking how = testing::pipe_all(site.client, args, ends);
  const auto spawned = co_await Client::ask(site.client, args, how);
  EXPECT_GT(spawned.as<wire::SpawnArgs>().pid, 1);

  const auto exited =
      (co_await wait_until(site.client, args.handle, WaitUntil::kExit)).as<wire::WaitArgs>();
  EXPECT_TRUE(exited.reached && exited.state.exited);
  EXPECT_EQ(exited.state.exit_code, 3);
  const auto held =
      (co_await wait_until(site.client, args.handle, WaitUntil::kSettled, 0)).as<wire::WaitArgs>();
  EXPECT_FALSE(held.reached || held.state.settled || held.state.empty);
  EXPECT_FALSE((co_await wait_until(site.client, args.handle, WaitUntil::kEmpty, 1))
                   .as<wire::WaitArgs>()
                   .reached);
  EXPECT_FALSE(site.client.session.take(ends.out)) << "a stream without END has not ended";

  co_await Client::ask(site.client, wire::TerminateArgs{args.handle}, kMutating);
  const auto out = co_await Client::all_of(site.client, ends.out);
  EXPECT_TRUE(out.ended && !out.error);
  const auto empty =
      (co_await wait_until(site.client, args.handle, WaitUntil::kEmpty)).as<wire::WaitArgs>();
  EXPECT_TRUE(empty.reached && empty.state.settled && empty.state.empty);
  EXPECT_EQ(empty.state.exit_code, 3) << "what it said itself stands";
}
// covers: X3, T2
TEST(ProcessService, TellsExitTheEndsOfOutputsAndEmptinessEachForItself) {
  tell_connected(tell_the_ends_apart);
}

aio::Task<> escalate(Site& site) {
  auto args = site.shell("trap '' TERM; echo ready; while :; do sleep 1000; done");
  std::uint32_t out = 0;
  const Asking how = testing::pipe_out(site.client, args, out);
  co_await Client::ask(site.client, args, how);
  testing::Streamed said;
  co_await Client::take(site.client, out, said, 6);
  co_await Client::ask(site.client, wire::TerminateArgs{args.handle, 50}, kMutating);
  const auto empty =
      (co_await wait_until(site.client, args.handle, WaitUntil::kEmpty)).as<wire::WaitArgs>();
  EXPECT_EQ(empty.state.signal, "SIGKILL");
  EXPECT_FALSE(empty.state.exit_code);
}
// covers: T1
TEST(ProcessService, KillsWhatDoesNotMindToBeTerminated) { tell_connected(escalate); }

aio::Task<> send_signals(Site& site) {
  auto args = site.shell("trap 'echo got; exit 7' USR1; echo ready; while :; do sleep 0.01; done");
  std::uint32_t out = 0;
  const Asking how = testing::pipe_out(site.client, args, out);
  co_await Client::ask(site.client, args, how);
  testing::Streamed said;
  co_await Client::take(site.client, out, said, 6);
  const auto none =
      co_await Client::ask(site.client, wire::SignalArgs{args.handle, "SIGNONE"}, kMutating);
  EXPECT_EQ(none.code(), FailureCode::kInvalid);
  using To = wire::SignalArgs::To;
  const auto sent = co_await Client::ask(
      site.client, wire::SignalArgs{args.handle, "SIGUSR1", To::kLeader}, kMutating);
  EXPECT_TRUE(sent.as<wire::SignalArgs>().delivered);
  EXPECT_EQ((co_await Client::all_of(site.client, out)).bytes, "got\n");
  const auto over =
      (co_await wait_until(site.client, args.handle, WaitUntil::kEmpty)).as<wire::WaitArgs>();
  EXPECT_EQ(over.state.exit_code, 7);
  const auto late = co_await Client::ask(
      site.client, wire::SignalArgs{args.handle, "SIGTERM", To::kTree}, kMutating);
  EXPECT_FALSE(late.as<wire::SignalArgs>().delivered) << "nobody was left";
}
TEST(ProcessService, SendsSignalsAndSaysWhetherSomebodyGotThem) { tell_connected(send_signals); }

aio::Task<> read_by_offset(Site& site) {
  auto args = site.shell("printf 0123456789abcdef; printf error >&2");
  args.out = wire::Collected{.bytes_max = 10, .spill_bytes_max = 1000};
  args.err = wire::Collected{.bytes_max = 5};
  co_await Client::ask(site.client, args, kMutating);
  const auto settled =
      (co_await wait_until(site.client, args.handle, WaitUntil::kSettled)).as<wire::WaitArgs>();
  EXPECT_TRUE(settled.state.out && settled.state.out->bytes == 16 && settled.state.out->lossy);
  EXPECT_TRUE(settled.state.err && settled.state.err->bytes == 5 && !settled.state.err->lossy);

  using wire::OutputName;
  const Asking reading{.download = true};
  const auto all = co_await Client::ask(
      site.client, wire::ReadOutputArgs{args.handle, OutputName::kStdout}, reading);
  EXPECT_EQ(all.download, "6789abcdef") << "exactly the last ten";
  const auto told = all.as<wire::ReadOutputArgs>();
  EXPECT_TRUE(told.from == 6 && told.next == 16 && told.lossy && told.ended && told.spill_path);
  if (told.spill_path) {
    EXPECT_EQ(*base::read_file(*told.spill_path), "0123456789abcdef");
    struct stat about{};
    EXPECT_EQ(::stat(told.spill_path->c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0600u);
  }
  const auto part = co_await Client::ask(
      site.client, wire::ReadOutputArgs{args.handle, OutputName::kStdout, 8, 3}, reading);
  EXPECT_EQ(part.download, "89a");
  EXPECT_FALSE(part.as<wire::ReadOutputArgs>().ended || part.as<wire::ReadOutputArgs>().lossy);
  const auto errors = co_await Client::ask(
      site.client, wire::ReadOutputArgs{args.handle, OutputName::kStderr}, reading);
  EXPECT_EQ(errors.download, "error");
  EXPECT_FALSE(errors.as<wire::ReadOutputArgs>().spill_path);
  const auto beyond = co_await Client::ask(
      site.client, wire::ReadOutputArgs{args.handle, OutputName::kStdout, 17}, reading);
  EXPECT_EQ(beyond.code(), FailureCode::kInvalid);
}

aio::Task<> read_what_comes(Site& site) {
  auto args = site.command({"cat"});
  args.out = wire::Collected{.bytes_max = 1000};
  const std::uint32_t in = site.client.session.new_stream();
  args.in = wire::Pipe{in};
  co_await Client::ask(site.client, args, {.mutating = true, .to_server = {in}});
  const auto read = [&](std::int64_t from, std::int64_t wait_ms) {
    return site.client.begin(
        wire::ReadOutputArgs{.handle = args.handle, .from = from, .wait_ms = wait_ms},
        {.download = true});
  };
  const auto at_once = co_await Client::answer(site.client, read(0, 1));
  const auto nothing = at_once.as<wire::ReadOutputArgs>();
  EXPECT_TRUE(at_once.ok && nothing.next == 0 && !nothing.ended) << "nothing came in that time";
  const std::uint32_t first = read(0, 100'000);
  co_await Client::put(site.client, in, "here", false);
  EXPECT_EQ((co_await Client::all_of(site.client, first)).bytes, "here");
  const std::uint32_t last = read(4, 100'000);
  co_await Client::put(site.client, in, "", true);
  const auto over = (co_await Client::answer(site.client, last)).as<wire::ReadOutputArgs>();
  EXPECT_TRUE(over.ended && over.next == 4);
  const auto state =
      (co_await wait_until(site.client, args.handle, WaitUntil::kEmpty)).as<wire::WaitArgs>().state;
  EXPECT_TRUE(state.age_ms && !state.detached);
}
TEST(ProcessService, WaitsForWhatIsToBeRead) { tell_connected(read_what_comes); }

// covers: O1, O2, O3
TEST(ProcessService, ReadsTheTailByOffsetsAsOftenAsAsked) { tell_connected(read_by_offset); }

aio::Task<> bound_what_is_read_at_once(Site& site) {
  auto args = site.command({"head", "-c", "16777216", "/dev/zero"});
  args.out = wire::Collected{.bytes_max = 16 << 20};
  co_await Client::ask(site.client, args, kMutating);
  co_await wait_until(site.client, args.handle, WaitUntil::kSettled);
  // Four that nobody takes hold all there is.
  const wire::ReadOutputArgs another{args.handle, wire::OutputName::kStdout};
  std::array<std::uint32_t, 4> held{};
  for (std::uint32_t& id : held) id = site.client.begin(another, {.download = true});
  for (const std::uint32_t id : held) EXPECT_TRUE((co_await Client::answer(site.client, id)).ok);
  EXPECT_EQ((co_await Client::ask(site.client, another, {.download = true})).code(),
            FailureCode::kBusy);
  EXPECT_EQ((co_await Client::all_of(site.client, held[0])).bytes.size(), std::size_t{16} << 20);
  EXPECT_EQ((co_await Client::ask(site.client, another, {.download = true})).download.size(),
            std::size_t{16} << 20);
}
TEST(ProcessService, HoldsSoMuchForReadersAndNoMore) { tell_connected(bound_what_is_read_at_once); }

aio::Task<> feed_data(Site& site) {
  auto args = site.command({"wc", "-c"});
  args.in = wire::StdinData{};
  args.out = wire::Collected{.bytes_max = 100};
  const auto counted = co_await Client::ask(
      site.client, args, {.mutating = true, .upload = std::string(3'000'000, 'x')});
  EXPECT_TRUE(counted.ok);
  co_await wait_until(site.client, args.handle, WaitUntil::kSettled);
  const auto said = co_await Client::ask(
      site.client, wire::ReadOutputArgs{args.handle, wire::OutputName::kStdout},
      {.download = true});
  EXPECT_EQ(said.download, "3000000\n");

  auto deaf = site.command({"true"});
  deaf.in = wire::StdinData{};
  EXPECT_TRUE((co_await Client::ask(site.client, deaf,
                                    {.mutating = true, .upload = std::string(1 << 20, 'x')}))
                  .ok);
  const auto over =
      (co_await wait_until(site.client, deaf.handle, WaitUntil::kSettled)).as<wire::WaitArgs>();
  EXPECT_EQ(over.state.exit_code, 0) << "that nobody reads them is no error";

  auto much = site.command({"wc", "-c"});
  much.in = wire::StdinData{};
  const auto refused = co_await Client::ask(
      site.client, much, {.mutating = true, .upload = std::string(kDataBytesMax + 1, 'x')});
  EXPECT_EQ(refused.code(), FailureCode::kInvalid);
  EXPECT_EQ((co_await wait_until(site.client, much.handle, WaitUntil::kExit)).code(),
            FailureCode::kNotFound)
      << "nothing was done";
}
TEST(ProcessService, FeedsUploadedDataAndThenTheEnd) { tell_connected(feed_data); }

struct FailedSpawn {
  const char* name;
  std::vector<std::string> argv;
  const char* cwd;
  const char *error, *step;
};
const FailedSpawn kFailedSpawns[] = {
    {"no_such_folder", {"true"}, "/nowhere", "ENOENT", "cwd"},
    {"a_file_for_a_folder", {"true"}, "/etc/passwd", "ENOTDIR", "cwd"},
    {"no_such_program", {"no-such-program"}, "/", "ENOENT", "exec"},  // 127 in a shell.
    {"a_folder", {"/etc"}, "/", "EACCES", "exec"},                    // 126 in a shell.
    {"not_executable", {"/etc/passwd"}, "/", "EACCES", "exec"},
};
aio::Task<> fail_to_spawn(Site& site) {
  for (const FailedSpawn& test : kFailedSpawns) {
    auto args = site.command(test.argv);
    args.cwd = test.cwd;
    std::uint32_t out = 0;
    const Asking how = testing::pipe_out(site.client, args, out);
    const auto spawned = co_await Client::ask(site.client, args, how);
    EXPECT_EQ(spawned.code(), FailureCode::kSpawnFailed) << test.name;
    if (spawned.failure && spawned.failure->detail)
      EXPECT_EQ(*spawned.failure->detail, (base::Json{{"errno", test.error}, {"step", test.step}}))
          << test.name;
    EXPECT_EQ((co_await wait_until(site.client, args.handle, WaitUntil::kExit)).code(),
              FailureCode::kSpawnFailed)
        << test.name << ": it keeps its handle";
    EXPECT_TRUE((co_await wait_until(site.client, args.handle, WaitUntil::kEmpty))
                    .as<wire::WaitArgs>()
                    .reached)
        << test.name;
    EXPECT_EQ((co_await Client::ask(site.client, args, how)).code(), FailureCode::kConflict)
        << test.name;
    EXPECT_TRUE((co_await Client::ask(site.client, wire::ReleaseArgs{args.handle}, kMutating)).ok);
    EXPECT_EQ((co_await wait_until(site.client, args.handle, WaitUntil::kExit)).code(),
              FailureCode::kNotFound)
        << test.name;
  }
  EXPECT_EQ(site.client.session.streams_open(), 0u);
}
// covers: P2
TEST(ProcessService, SaysWhatASpawnFailedAt) { tell_connected(fail_to_spawn); }

aio::Task<> refuse(Site& site) {
  const auto code_of = [&site](wire::SpawnArgs args, Asking how) {
    how.mutating = true;
    return Client::ask(site.client, std::move(args), std::move(how));
  };
  auto args = site.command({"true"});
  args.out = wire::Pipe{site.client.session.new_stream()};
  EXPECT_EQ((co_await code_of(args, {})).code(), FailureCode::kInvalid) << "it was not opened";
  const std::uint32_t stream = site.client.session.new_stream();
  args.out = wire::Pipe{stream};
  EXPECT_EQ((co_await code_of(args, {.to_server = {stream}})).code(), FailureCode::kInvalid)
      << "it runs the other way";
  args.out = wire::OutputDiscarded{};
  EXPECT_EQ((co_await code_of(args, {.to_client = {site.client.session.new_stream()}})).code(),
            FailureCode::kInvalid)
      << "nothing is carried by it";
  args.env = {{"A", std::string("b\0c", 3)}};
  EXPECT_EQ((co_await code_of(args, {})).code(), FailureCode::kInvalid);
  const wire::WaitArgs unknown{"0123456789abcdef", WaitUntil::kExit};
  EXPECT_EQ((co_await Client::ask(site.client, unknown)).code(), FailureCode::kNotFound);
  EXPECT_EQ(
      (co_await Client::ask(site.client, wire::TerminateArgs{unknown.handle}, kMutating)).code(),
      FailureCode::kNotFound);
}
TEST(ProcessService, RefusesWhatCannotBeMeantBeforeAnythingIsDone) { tell_connected(refuse); }

aio::Task<> hide_secrets(Site& site) {
  auto args = site.shell("echo \"$A_TOKEN,$GIVEN_TOKEN\"; pwd");
  args.env.emplace_back("GIVEN_TOKEN", "given");
  args.out = wire::Collected{.bytes_max = 1000};
  co_await Client::ask(site.client, args, kMutating);
  co_await wait_until(site.client, args.handle, WaitUntil::kSettled);
  const auto said = co_await Client::ask(
      site.client, wire::ReadOutputArgs{args.handle, wire::OutputName::kStdout},
      {.download = true});
  EXPECT_EQ(said.download, ",given\n" + site.folder.path().string() + "\n");

  const auto found = co_await Client::ask(site.client, wire::ResolveExecutableArgs{"sh"});
  EXPECT_TRUE(found.as<wire::ResolveExecutableArgs>().path.starts_with("/"));
  const auto none = co_await Client::ask(site.client, wire::ResolveExecutableArgs{"no-such-one"});
  EXPECT_EQ(none.code(), FailureCode::kExecutableNotFound);
  const auto elsewhere =
      co_await Client::ask(site.client, wire::ResolveExecutableArgs{"sh", {{"PATH", "/nowhere"}}});
  EXPECT_EQ(elsewhere.code(), FailureCode::kExecutableNotFound);
}
TEST(ProcessService, RunsCommandsInTheEnvironmentOfTheUserLessItsSecrets) {
  tell_connected(hide_secrets);
}

aio::Task<> list_in_pages(Site& site) {
  std::vector<std::string> handles;
  for (int i = 0; i < 3; ++i) {
    auto args = site.command({"sleep", "1000"});
    args.argv.push_back(std::string(i == 1 ? 100'000 : 10, '0'));
    handles.push_back(args.handle);
    EXPECT_TRUE((co_await Client::ask(site.client, args, kMutating)).ok);
  }
  const auto page =
      (co_await Client::ask(site.client, wire::ListProcessesArgs{2})).as<wire::ListProcessesArgs>();
  EXPECT_TRUE(page.more && page.processes.size() == 2);
  if (page.processes.size() != 2) co_return;
  EXPECT_EQ(page.processes[0].handle, handles[0]);
  EXPECT_EQ(page.processes[0].argv.size(), 3u);
  EXPECT_TRUE(page.processes[0].mine && page.processes[0].state.pid > 1);
  EXPECT_EQ(page.processes[1].argv.size(), 2u) << "what is very long is left out";
  const auto rest = (co_await Client::ask(site.client, wire::ListProcessesArgs{2, handles[1]}))
                        .as<wire::ListProcessesArgs>();
  EXPECT_TRUE(!rest.more && rest.processes.size() == 1);

  // A sandbox-mate's, under a narrower mode.
  Client& other = site.mate;
  site.tasks.spawn(Client::carry(other));
  const auto theirs =
      (co_await Client::ask(other, wire::ListProcessesArgs{})).as<wire::ListProcessesArgs>();
  EXPECT_EQ(theirs.processes.size(), 3u);
  EXPECT_FALSE(theirs.processes.empty() || theirs.processes[0].mine);
  const auto hidden =
      (co_await Client::ask(other, wire::ListProcessesArgs{}, {.mode = wire::Ceiling::kReadOnly}))
          .as<wire::ListProcessesArgs>();
  EXPECT_TRUE(hidden.processes.empty());
  const Asking narrow{.mutating = true, .mode = wire::Ceiling::kWorkspaceWrite};
  const std::string& handle = handles[0];
  EXPECT_EQ((co_await Client::ask(other, wire::TerminateArgs{handle}, narrow)).code(),
            FailureCode::kDenied);
  EXPECT_EQ((co_await Client::ask(other, wire::AttachArgs{.handle = handle}, narrow)).code(),
            FailureCode::kDenied);
  EXPECT_EQ((co_await Client::ask(other, wire::ReleaseArgs{handle}, narrow)).code(),
            FailureCode::kDenied);
  EXPECT_EQ((co_await Client::ask(other, wire::SignalArgs{handle, "SIGTERM"}, narrow)).code(),
            FailureCode::kDenied);
  EXPECT_EQ((co_await Client::ask(other, wire::ReleaseArgs{handles[0]}, kMutating)).code(),
            FailureCode::kConflict)
      << "something of it lives";
  other.session.finish();
  other.said.notify_all();
}
TEST(ProcessService, ListsWhatTheCallerMayKnowInPages) { tell_connected(list_in_pages); }

aio::Task<> confine(Site& site) {
  auto args = site.shell("echo x > /etc/sandfleet-test; echo $?");
  args.out = wire::Collected{.bytes_max = 100};
  const auto spawned =
      co_await Client::ask(site.client, args, {.mutating = true, .mode = wire::Ceiling::kReadOnly});
  if (why_unconfinable(PermissionMode::kReadOnly, landlock_abi())) {
    EXPECT_EQ(spawned.code(), FailureCode::kConfinementUnavailable);
    co_return;
  }
  EXPECT_TRUE(spawned.ok);
  co_await wait_until(site.client, args.handle, WaitUntil::kSettled);
  const auto said = co_await Client::ask(
      site.client, wire::ReadOutputArgs{args.handle, wire::OutputName::kStdout},
      {.download = true});
  EXPECT_NE(said.download, "0\n");
}
TEST(ProcessService, HoldsACommandToItsModeOrSaysThatItCannot) { tell_connected(confine); }

// The reply to the spawn never comes: the connection is cut before it does.
aio::Task<> find_by_handle(Site& site) {
  auto args = site.command({"sleep", "1000"});
  site.client.begin(args, kMutating);
  co_await Site::until_left(site, 1);
  Client& other = site.mate;
  site.tasks.spawn(Client::carry(other));
  EXPECT_TRUE((co_await Client::ask(other, wire::AttachArgs{.handle = args.handle}, kMutating))
                  .as<wire::AttachArgs>()
                  .state.pid > 1);
  co_await Client::ask(other, wire::TerminateArgs{args.handle}, kMutating);
  const auto over =
      (co_await wait_until(other, args.handle, WaitUntil::kEmpty)).as<wire::WaitArgs>();
  EXPECT_EQ(over.state.signal, "SIGTERM");
  EXPECT_TRUE((co_await Client::ask(other, wire::ReleaseArgs{args.handle}, kMutating)).ok);
  EXPECT_EQ(site.left(), 0u);
}
// covers: M7, T5
TEST(ProcessService, ASpawnIsFoundAndEndedByItsHandleWhoeverHeardOfIt) {
  tell_connected(find_by_handle);
}

aio::Task<> win_before_it_began(Site& site) {
  auto args = site.command({"sleep", "1000"});
  args.in = wire::StdinData{};
  const std::uint32_t spawn = site.client.begin(args, {.mutating = true, .upload = ""});
  co_await Client::put(site.client, spawn, "some", false);
  co_await Client::ask(site.client, wire::TerminateArgs{args.handle}, kMutating);
  const std::uint32_t wait = site.client.begin(wire::WaitArgs{args.handle, WaitUntil::kEmpty});
  co_await Client::put(site.client, spawn, " more", true);
  EXPECT_EQ((co_await Client::answer(site.client, spawn)).code(), FailureCode::kCancelled);
  EXPECT_EQ((co_await Client::answer(site.client, wait)).code(), FailureCode::kNotFound);
  EXPECT_EQ(site.left(), 0u);
}
// covers: T5
TEST(ProcessService, ATerminateBeforeTheSpawnHasAllItsDataWins) {
  tell_connected(win_before_it_began);
}

aio::Task<> give_up(Site& site) {
  auto args = site.command({"sleep", "1000"});
  args.in = wire::StdinData{};
  const std::uint32_t spawn = site.client.begin(args, {.mutating = true, .upload = ""});
  co_await Client::put(site.client, spawn, "some", false);
  site.client.session.cancel(spawn);
  site.client.said.notify_all();
  EXPECT_EQ((co_await Client::answer(site.client, spawn)).code(), FailureCode::kCancelled);
  args.in = wire::StdinIgnored{};
  EXPECT_TRUE((co_await Client::ask(site.client, args, kMutating)).ok) << "its handle is free";
  const std::uint32_t wait = site.client.begin(wire::WaitArgs{args.handle, WaitUntil::kExit});
  site.client.session.cancel(wait);
  site.client.said.notify_all();
  co_await Client::ask(site.client, wire::TerminateArgs{args.handle}, kMutating);
  EXPECT_TRUE((co_await wait_until(site.client, args.handle, WaitUntil::kEmpty)).ok);
}
TEST(ProcessService, GivesUpWhatIsCancelled) { tell_connected(give_up); }

// Four processes, two of which escape by a session of their own.
constexpr const char* kEscapee = "setsid sh -c 'sleep 1000; :' & sleep 1000; :";

aio::Task<> end_with_the_session(Site& site) {
  const auto args = site.shell(kEscapee);
  EXPECT_TRUE((co_await Client::ask(site.client, args, kMutating)).ok);
  auto kept = site.command({"sleep", "1000"});
  EXPECT_TRUE((co_await Client::ask(site.client, kept, kMutating)).ok);
  auto detached = site.command({"sleep", "1000"});
  detached.detached = true;
  EXPECT_TRUE((co_await Client::ask(site.client, detached, kMutating)).ok);
  co_await Site::until_left(site, 6);
  Client& other = site.mate;
  site.tasks.spawn(Client::carry(other));
  EXPECT_TRUE((co_await Client::ask(other, wire::AttachArgs{.handle = kept.handle, .adopt = true},
                                    kMutating))
                  .ok);
  site.client.session.finish();
  site.client.said.notify_all();
  co_await Site::until_left(site, 2);
  EXPECT_EQ((co_await wait_until(other, args.handle, WaitUntil::kEmpty)).code(),
            FailureCode::kNotFound);
  EXPECT_FALSE((co_await wait_until(other, detached.handle, WaitUntil::kExit, 0))
                   .as<wire::WaitArgs>()
                   .reached)
      << "what is detached has no session to end with";
  EXPECT_TRUE((co_await Client::ask(other, wire::TerminateArgs{detached.handle}, kMutating)).ok);
  co_await Site::until_left(site, 1);
  EXPECT_FALSE(
      (co_await wait_until(other, kept.handle, WaitUntil::kExit, 0)).as<wire::WaitArgs>().reached)
      << "who adopted it has it";
  other.session.finish();
  other.said.notify_all();
  co_await Site::until_left(site, 0);
}
aio::Task<> tell_end_with_the_session(Site& site) {
  return aio::both(Client::carry(site.client), end_with_the_session(site));
}
// covers: T7, M7
TEST(ProcessService, NothingOutlivesItsSessionButWhatAnotherAdoptedOrIsDetached) {
  aio::testing::tell(tell_end_with_the_session);
}

// At most so much counts from one look to the next.
aio::Task<> pass(Site& site) {
  site.clock.advance(base::AwakeTime::kGapMax);
  co_await aio::sleep_for(wire::WebLinks::kTick);
}
aio::Task<> end_with_the_lease(Site& site) {
  const auto args = site.shell(kEscapee);
  aio::TaskGroup link(site.loop.executor());
  link.spawn(Client::carry(site.client));
  EXPECT_TRUE((co_await Client::ask(site.client, args, kMutating)).ok);
  co_await Site::until_left(site, 4);

  // It stands still while the sandbox is about to pause.
  site.sessions.quiesced();
  co_await link.wait();
  for (int look = 0; look < 6; ++look) co_await pass(site);
  EXPECT_EQ(site.left(), 4u);
  site.sessions.resumed({testing::identity()});
  link.spawn(Client::carry(site.client));
  EXPECT_TRUE((co_await wait_until(site.client, args.handle, WaitUntil::kExit, 0)).ok);
  EXPECT_EQ(site.client.count<wire::Noticed>(), 0u) << "nothing was lost";

  link.cancel();
  co_await link.wait();
  while (site.left() != 0) co_await pass(site);
  link.spawn(Client::carry(site.client));
  EXPECT_EQ((co_await wait_until(site.client, args.handle, WaitUntil::kExit)).code(),
            FailureCode::kNotFound);
  while (site.client.count<wire::Noticed>() == 0) co_await site.client.said.wait();
  EXPECT_EQ(site.client.find<wire::Noticed>()->notice.kind, "lost");
  link.cancel();
  co_await link.wait();
}
// covers: M7
TEST(ProcessService, ALeaseThatEndsEndsThemAndStandsStillInAPause) {
  aio::testing::tell(end_with_the_lease, std::int64_t{8});
}

aio::Task<> lose(Site& site) {
  const auto args = site.shell(kEscapee);
  aio::TaskGroup link(site.loop.executor());
  link.spawn(Client::carry(site.client));
  EXPECT_TRUE((co_await Client::ask(site.client, args, kMutating)).ok);
  co_await Site::until_left(site, 4);
  site.sessions.quiesced();
  co_await link.wait();
  site.sessions.resumed(
      {.identity = {"uid-1", 3, 5, 7}, .news = wire::News{"rolledBack", "It is as it was at 9."}});
  for (int time = 0; time < 3; ++time) {
    link.spawn(Client::carry(site.client));
    EXPECT_EQ((co_await wait_until(site.client, args.handle, WaitUntil::kEmpty)).code(),
              FailureCode::kLost);
    while (site.client.count<wire::Noticed>() == 0) co_await site.client.said.wait();
    link.cancel();
    co_await link.wait();
  }
  EXPECT_EQ(site.client.count<wire::Noticed>(), 1u);
  const wire::Notice& notice = site.client.find<wire::Noticed>()->notice;
  EXPECT_EQ(notice.kind, "rolledBack");
  EXPECT_EQ(notice.message, "It is as it was at 9.");
  co_await Site::until_left(site, 0);
}
// covers: W4, 4.7
TEST(ProcessService, WhatWentWithItsIncarnationIsLostAndSaidSoOnce) { aio::testing::tell(lose); }

aio::Task<> bound_what_runs(Site& site) {
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE((co_await Client::ask(site.client, site.command({"sleep", "1000"}), kMutating)).ok);
  auto third = site.command({"sleep", "1000"});
  const auto refused = co_await Client::ask(site.client, third, kMutating);
  EXPECT_EQ(refused.code(), FailureCode::kBusy);
  EXPECT_EQ((co_await wait_until(site.client, third.handle, WaitUntil::kExit)).code(),
            FailureCode::kNotFound)
      << "nothing was done";
}
TEST(ProcessService, SoManyRunAtOnce) {
  tell_connected(bound_what_runs, std::int64_t{300}, SubprocessLimits{.running_max = 2});
}

}  // namespace
}  // namespace executor
