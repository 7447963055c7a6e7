#pragma once

#include <signal.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/sessions/sessions.h"
#include "executor/sessions/testing/client.h"
#include "executor/testing/marked.h"
#include "executor/testing/scratch.h"
#include "libs/aio/testing/run.h"
#include "libs/base/crypto.h"
#include "libs/base/testing/cgroup.h"
#include "libs/wire/frames/process_operations.h"

namespace executor::testing {

// The machine's clock, which a test may move on.
class MovedClock final : public base::Clock {
 public:
  base::Moment now() const override { return base::SystemClock().now() + moved_; }
  base::WallTime wall() const override { return base::SystemClock().wall(); }
  void advance(base::Milliseconds by) { moved_ += by; }

 private:
  base::Milliseconds moved_{};
};

// An executor's port, over a folder of the test's, and a client of it. What runs there is held by
// cgroups where the machine has some to give.
struct Site {
  explicit Site(std::int64_t lease_seconds = 300, SubprocessLimits limits = {})
      : background(2),
        containments(cgroup.path().empty()
                         ? contain_by_reapers(loop.executor())
                         : contain_by_groups(loop.executor(), Groups(cgroup.path()))),
        activity(clock.now(), {[this] { return containments->cpu_used(); }}),
        sessions({.executor = loop.executor(),
                  .background = background,
                  .clock = clock,
                  .time = time,
                  .activity = activity,
                  .stagings = *Stagings::open(runtime.path()),
                  .processes = processes(limits),
                  .instance = "i-1",
                  .attach_key = attach_key(),
                  .tools = runtime.path() / "tools",
                  .workspace = folder.path().string()},
                 identity()),
        server(loop.executor(), [this](auto exchange) { return sessions.serve(exchange); }),
        client(loop.executor(), *server.listen("127.0.0.1", 0), lease_seconds),
        mate(loop.executor(), client.port),
        tasks(loop.executor()) {
    ::signal(SIGPIPE, SIG_IGN);
    tasks.spawn(sessions.tend());
  }

  wire::SpawnArgs command(std::vector<std::string> argv) {
    return {.handle = "handle-of-a-test-" + std::to_string(++commands),
            .argv = std::move(argv),
            .env = {{kMark, mark}},
            .grace_ms = 10'000};
  }
  wire::SpawnArgs shell(const std::string& script) { return command({"sh", "-c", script}); }
  std::size_t left() const { return marked(mark).size(); }
  // Until so many of its processes live.
  static aio::Task<> until_left(Site& site, std::size_t count) {
    while (site.left() != count) co_await aio::sleep_for(base::Milliseconds(5));
  }

  const std::string mark = base::random_hex(8);
  Scratch folder, runtime;
  base::TemporaryCgroup cgroup;
  aio::Loop loop;
  MovedClock clock;
  wire::KnownTime time{clock};
  aio::Background background;
  std::unique_ptr<Containments> containments;
  Activity activity;
  Sessions sessions;
  aio::HttpServer server;
  Client client, mate;  // The second one, of another session, is nowhere connected by itself.
  aio::TaskGroup tasks;
  int commands = 0;

 private:
  SubprocessSite processes(SubprocessLimits limits) {
    const char* path = std::getenv("PATH");
    return {.executor = loop.executor(),
            .background = background,
            .containments = *containments,
            .spills =
                *SpillFolder::open(loop.executor(), runtime.path() / "spills", 1 << 30, background),
            .user = {},
            .environment = {{"PATH", path ? path : "/usr/bin:/bin"}, {"A_TOKEN", "secret"}},
            .limits = limits};
  }
};

// A command and what its outputs are carried by.
struct Pipes {
  std::uint32_t in = 0, out = 0, errors = 0;
};

// Makes all three ends of a command pipes.
inline Asking pipe_all(Client& client, wire::SpawnArgs& args, Pipes& ends) {
  ends = {client.session.new_stream(), client.session.new_stream(), client.session.new_stream()};
  args.in = wire::Pipe{ends.in};
  args.out = wire::Pipe{ends.out};
  args.err = wire::Pipe{ends.errors};
  return {.mutating = true, .to_client = {ends.out, ends.errors}, .to_server = {ends.in}};
}
// Its stdout alone.
inline Asking pipe_out(Client& client, wire::SpawnArgs& args, std::uint32_t& out) {
  out = client.session.new_stream();
  args.out = wire::Pipe{out};
  return {.mutating = true, .to_client = {out}};
}

inline aio::Task<Answer> wait_until(Client& client, std::string handle, wire::WaitUntil until,
                                    std::optional<std::int64_t> timeout_ms = std::nullopt) {
  return Client::ask(client, wire::WaitArgs{std::move(handle), until, timeout_ms});
}

// Goes on with the output of a command, and with what it reads where `in` is to carry that.
inline aio::Task<wire::AttachArgs::Ok> attach(Client& client, std::string handle,
                                              wire::AttachedOutput out,
                                              std::optional<std::uint32_t> in = std::nullopt) {
  Asking how{.mutating = true, .to_client = {out.stream}};
  if (in) how.to_server = {*in};
  const wire::AttachArgs args{.handle = std::move(handle), .in = in, .out = out};
  co_return (co_await Client::ask(client, args, how)).as<wire::AttachArgs>();
}

// Tells `story` while the client is connected, again and again.
inline aio::Task<> connected(Client& client, aio::Task<> story) {
  const auto told =
      co_await aio::within(aio::race(Client::stay(client), std::move(story)), base::Seconds(220));
  EXPECT_EQ(told, 1) << "the story did not come to its end";
}

// The same with a Site of its own, made with `arguments`.
template <typename... Arguments>
void tell_connected(aio::Task<> (*story)(Site&), Arguments... arguments) {
  Site site(arguments...);
  aio::testing::run(site.loop, connected(site.client, story(site)));
}

}  // namespace executor::testing
