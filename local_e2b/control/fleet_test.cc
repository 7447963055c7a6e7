#include "local_e2b/control/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/aio/testing/run.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/base/testing/temporary_folder.h"
#include "local_e2b/control/testing/fake_box_host.h"

namespace local_e2b {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A fleet over fake boxes; the clock stands unless it is moved.
struct World {
  explicit World(FleetLimits given = {})
      : records(*Records::open(folder.path())),
        host(loop.executor()),
        connections(8),
        limits(given),
        fleet(std::make_unique<Fleet>(loop.executor(), host, records, connections, clock, limits)) {
  }

  // As after `kill -9`: nothing remains but the records and the boxes.
  void restart() {
    fleet = std::make_unique<Fleet>(loop.executor(), host, records, connections, clock, limits);
  }
  void run(aio::Task<> story) { aio::testing::run(loop, std::move(story)); }

  base::TemporaryFolder folder;
  aio::Loop loop;
  base::FakeClock clock;
  Records records;
  FakeBoxHost host;
  Connections connections;
  FleetLimits limits;
  std::unique_ptr<Fleet> fleet;
};

aio::Task<std::string> make(World& world, CreateRequest request = {.template_id = "base",
                                                                   .timeout_seconds = 300}) {
  const auto made = co_await world.fleet->create("red", std::move(request));
  EXPECT_TRUE(made) << made.error().message;
  co_return made ? made->id : "";
}

// Lets everything that can go on do so.
aio::Task<> settle() {
  for (int i = 0; i < 20; ++i) co_await aio::sleep_for(base::Milliseconds(0));
}

struct Slot {
  std::optional<Outcome<base::Done>> outcome;
  int status() const { return !outcome ? 0 : outcome->ok() ? 200 : outcome->error().status; }
};
aio::Task<> keep(aio::Task<Outcome<base::Done>> task, Slot& slot) {
  slot.outcome.emplace(co_await std::move(task));
}
// Calls that are under way because the host holds back what they need of it.
class UnderWay {
 public:
  UnderWay(World& world, std::string held)
      : world_(world), held_(std::move(held)), group_(world.loop.executor()) {
    world.host.hold(held_);
  }
  // Goes as far as it can.
  aio::Task<> begin(aio::Task<Outcome<base::Done>> call, Slot& slot) {
    group_.spawn(keep(std::move(call), slot));
    co_await settle();
  }
  aio::Task<> finish() {
    world_.host.release(held_);
    co_await group_.wait();
  }
  void cancel() { group_.cancel(); }
  // As when the server dies.
  aio::Task<> cut_off() {
    cancel();
    co_await group_.wait();
    world_.host.release(held_);
  }

 private:
  World& world_;
  const std::string held_;
  aio::TaskGroup group_;
};

aio::Task<Outcome<base::Done>> connect_only(World& world, std::string id, std::int64_t timeout) {
  ConnectRequest request{.timeout_seconds = timeout};
  CO_CHECK_OK(co_await world.fleet->connect("red", id, request));
  co_return base::Done{};
}
aio::Task<Outcome<base::Done>> create_only(World& world) {
  CreateRequest request{.template_id = "base", .timeout_seconds = 60};
  CO_CHECK_OK(co_await world.fleet->create("red", std::move(request)));
  co_return base::Done{};
}

aio::Task<> creates(World& world) {
  CreateRequest request{.template_id = "base-executor", .timeout_seconds = 60};
  request.env["A"] = "1";
  const auto id = co_await make(world, std::move(request));
  EXPECT_EQ(id.size(), 21u);
  EXPECT_TRUE(world.host.baked(id));
  const auto& init = world.host.inits[id].at(0);
  EXPECT_EQ(init.env.at("A"), "1");
  EXPECT_FALSE(init.access_token.empty());
  const auto sandbox = world.fleet->get("red", id);
  EXPECT_EQ(sandbox->envd_version, "0.6.13");
  EXPECT_EQ(sandbox->end_at - sandbox->started_at, seconds(60));
  EXPECT_EQ(world.fleet->get("blue", id).error().status, 404) << "another team's is not there";
  EXPECT_EQ((co_await world.fleet->kill("blue", id)).error().status, 404);
}
TEST(Fleet, MakesASandboxOfOneTeam) {
  World world;
  world.run(creates(world));
}

aio::Task<> hides_starting(World& world) {
  UnderWay calls(world, "init");
  Slot slot;
  co_await calls.begin(create_only(world), slot);
  EXPECT_EQ(world.host.boxes.size(), 1u);
  const auto id = world.host.boxes.begin()->first;
  EXPECT_EQ(world.fleet->get("red", id).error().status, 404);
  EXPECT_EQ((co_await world.fleet->kill("red", id)).error().status, 404);
  EXPECT_EQ(world.records.load().at(0).phase, Phase::kStarting) << "written down before it is done";
  co_await calls.finish();
  EXPECT_EQ(slot.status(), 200);
  EXPECT_TRUE(world.fleet->get("red", id));
}
TEST(Fleet, ShowsASandboxOnceItRuns) {
  World world;
  world.run(hides_starting(world));
}

aio::Task<> undoes(World& world, std::string operation) {
  world.host.fail(operation, 1);
  CreateRequest request{.template_id = "base", .timeout_seconds = 60};
  const auto made = co_await world.fleet->create("red", std::move(request));
  EXPECT_EQ(made.error().status, 500);
  EXPECT_EQ(made.error().error_code, "sandbox_create_failed");
  EXPECT_TRUE(world.host.boxes.empty());
  EXPECT_TRUE(world.records.load().empty());
  EXPECT_TRUE(world.fleet->all().empty());
}
TEST(Fleet, LeavesNothingOfACreateThatFailed) {
  for (const char* operation : {"create", "init"}) {
    World world;
    world.run(undoes(world, operation));
  }
}

aio::Task<> refuses_pauses(World& world) {
  const auto id = co_await make(world);
  world.host.no_freeze = "no cgroup";
  const auto paused = co_await world.fleet->pause("red", id);
  EXPECT_EQ(paused.error().status, 400) << "asking again would not help";
  EXPECT_THAT(paused.error().message, HasSubstr("no cgroup"));
  EXPECT_THAT(world.host.done, ::testing::Not(::testing::Contains("freeze " + id)));
  EXPECT_EQ(world.fleet->find(id)->phase, Phase::kRunning);
  CreateRequest request{.template_id = "base", .timeout_seconds = 60, .auto_pause = true};
  const auto made = co_await world.fleet->create("red", std::move(request));
  EXPECT_EQ(made.error().status, 400);
  EXPECT_THAT(made.error().message, HasSubstr("autoPause must be false"));
  EXPECT_EQ(world.fleet->all().size(), 1u);
}
TEST(Fleet, RefusesPausesThatCanNeverBe) {
  World world;
  world.run(refuses_pauses(world));
}

aio::Task<> bounds(World& world) {
  const auto first = co_await make(world);
  co_await make(world);
  CreateRequest request{.template_id = "base", .timeout_seconds = 60};
  const auto third = co_await world.fleet->create("red", request);
  EXPECT_EQ(third.error().status, 429);
  EXPECT_TRUE(co_await world.fleet->pause("red", first)) << "a paused one takes no place";
  co_await make(world);
  EXPECT_EQ((co_await connect_only(world, first, 60)).error().status, 429);
}
TEST(Fleet, RefusesMoreThanItsQuota) {
  World world({.sandboxes_max = 2});
  world.run(bounds(world));
}

aio::Task<> pauses(World& world) {
  const auto id = co_await make(world);
  world.clock.advance(seconds(7));
  EXPECT_TRUE(co_await world.fleet->pause("red", id));
  const auto paused = world.fleet->get("red", id);
  EXPECT_EQ(paused->phase, Phase::kPaused);
  EXPECT_EQ(paused->end_at, world.clock.wall()) << "when it was paused, not when it ends";
  EXPECT_TRUE(world.host.boxes[id].frozen);
  EXPECT_EQ((co_await world.fleet->pause("red", id)).error().status, 409);
  EXPECT_EQ(world.fleet->set_timeout("red", id, 60).error().status, 404);
  EXPECT_EQ(world.fleet->refresh("red", id, 60).error().status, 404);
  world.clock.advance(std::chrono::hours(9));
  world.fleet->expire_due();
  co_await settle();
  EXPECT_TRUE(world.fleet->get("red", id)) << "paused takes no time of the lease";

  ConnectRequest request{.timeout_seconds = 60};
  const auto connected = co_await world.fleet->connect("red", id, request);
  EXPECT_TRUE(connected->resumed);
  EXPECT_EQ(connected->sandbox.started_at, world.clock.wall());
  EXPECT_EQ(connected->sandbox.end_at, world.clock.wall() + seconds(60));
  EXPECT_FALSE(world.host.boxes[id].frozen);
  EXPECT_FALSE(world.host.inits[id].at(1).set_env) << "it keeps its environment";
  EXPECT_EQ((co_await world.fleet->resume("red", id, request)).error().status, 409);
}
TEST(Fleet, PausesAndResumes) {
  World world;
  world.run(pauses(world));
}

aio::Task<> joins_pause(World& world) {
  const auto id = co_await make(world);
  UnderWay calls(world, "freeze");
  Slot first, second, killed;
  co_await calls.begin(world.fleet->pause("red", id), first);
  co_await calls.begin(world.fleet->pause("red", id), second);
  EXPECT_EQ(world.fleet->get("red", id)->phase, Phase::kPausing);
  EXPECT_EQ(world.fleet->set_timeout("red", id, 9).error().status, 409);
  co_await calls.begin(world.fleet->kill("red", id), killed);
  EXPECT_EQ(killed.status(), 0) << "a kill waits for the pause";
  co_await calls.finish();
  EXPECT_EQ(first.status(), 200);
  EXPECT_EQ(second.status(), 200) << "the second joined the first";
  EXPECT_EQ(killed.status(), 200);
  EXPECT_THAT(world.host.done,
              ElementsAre("create " + id, "init " + id, "freeze " + id, "destroy " + id));
}
TEST(Fleet, JoinsAPauseUnderWayAndKillsAfterIt) {
  World world;
  world.run(joins_pause(world));
}

aio::Task<> joins_resume(World& world) {
  const auto id = co_await make(world);
  EXPECT_TRUE(co_await world.fleet->pause("red", id));
  UnderWay calls(world, "thaw");
  Slot first, second;
  co_await calls.begin(connect_only(world, id, 10), first);
  co_await calls.begin(connect_only(world, id, 90), second);
  EXPECT_EQ((co_await world.fleet->kill("red", id)).error().status, 409) << "nothing is deleted";
  ConnectRequest request{.timeout_seconds = 5};
  EXPECT_EQ((co_await world.fleet->resume("red", id, request)).error().status, 409);
  co_await calls.finish();
  EXPECT_EQ(first.status(), 200);
  EXPECT_EQ(second.status(), 200);
  EXPECT_EQ(world.host.inits[id].size(), 2u) << "one start for both";
  EXPECT_EQ(world.fleet->get("red", id)->end_at, world.clock.wall() + seconds(90));
}
TEST(Fleet, StartsOnceForTwoWhoConnect) {
  World world;
  world.run(joins_resume(world));
}

aio::Task<> joins_kill(World& world) {
  const auto id = co_await make(world);
  UnderWay calls(world, "destroy");
  Slot first, second;
  co_await calls.begin(world.fleet->kill("red", id), first);
  co_await calls.begin(world.fleet->kill("red", id), second);
  EXPECT_EQ(world.fleet->get("red", id).error().status, 404);
  EXPECT_EQ((co_await world.fleet->pause("red", id)).error().status, 404);
  EXPECT_EQ((co_await connect_only(world, id, 60)).error().status, 409);
  EXPECT_EQ(world.records.load().at(0).phase, Phase::kKilling);
  co_await calls.finish();
  EXPECT_EQ(first.status(), 200);
  EXPECT_EQ(second.status(), 200);
  EXPECT_EQ((co_await world.fleet->kill("red", id)).error().status, 404);
  EXPECT_TRUE(world.records.load().empty());
}
TEST(Fleet, KillsOnce) {
  World world;
  world.run(joins_kill(world));
}

// As on a full disk, but for every user.
void refuse_records(World& world) {
  std::filesystem::remove_all(world.folder.path() / "sandboxes");
}

aio::Task<> kills_unwritten(World& world) {
  const auto id = co_await make(world);
  refuse_records(world);
  EXPECT_EQ((co_await world.fleet->pause("red", id)).error().status, 503);
  EXPECT_TRUE(co_await world.fleet->kill("red", id));
  EXPECT_TRUE(world.host.boxes.empty());
  EXPECT_TRUE(world.fleet->all().empty());
}
TEST(Fleet, KillsEvenWhenItCannotWriteSo) {
  World world;
  world.run(kills_unwritten(world));
}

aio::Task<> undoes_unwritten(World& world) {
  UnderWay calls(world, "init");
  Slot slot;
  co_await calls.begin(create_only(world), slot);
  refuse_records(world);
  co_await calls.finish();
  EXPECT_EQ(slot.status(), 500);
  EXPECT_TRUE(world.host.boxes.empty());
  EXPECT_TRUE(world.fleet->all().empty());
}
TEST(Fleet, PromisesNoSandboxWhoseRecordCannotBeWritten) {
  World world;
  world.run(undoes_unwritten(world));
}

aio::Task<> survives_failures(World& world) {
  const auto id = co_await make(world);
  world.host.fail("freeze", 1);
  EXPECT_EQ((co_await world.fleet->pause("red", id)).error().status, 503);
  EXPECT_EQ(world.fleet->get("red", id)->phase, Phase::kRunning)
      << "a refused pause changes nothing";
  EXPECT_TRUE(co_await world.fleet->pause("red", id));
  world.host.fail("init", 1);
  EXPECT_EQ((co_await connect_only(world, id, 60)).error().status, 503);
  EXPECT_EQ(world.fleet->get("red", id)->phase, Phase::kPaused) << "and neither does a resume";
  EXPECT_TRUE(world.host.boxes[id].frozen);
  world.host.fail("thaw", 1);
  world.host.boxes.erase(id);
  EXPECT_EQ((co_await connect_only(world, id, 60)).error().status, 404) << "its box died";
  EXPECT_TRUE(world.fleet->all().empty());
}
TEST(Fleet, GoesOnAfterAFailure) {
  World world;
  world.run(survives_failures(world));
}

aio::Task<> leases(World& world) {
  const auto id = co_await make(world, {.template_id = "base", .timeout_seconds = 100});
  const auto start = world.clock.wall();
  const auto end = [&] { return world.fleet->get("red", id)->end_at - start; };
  EXPECT_TRUE(world.fleet->refresh("red", id, 50));
  EXPECT_EQ(end(), seconds(100)) << "a refresh never shortens";
  EXPECT_TRUE(co_await connect_only(world, id, 50));
  EXPECT_EQ(end(), seconds(100)) << "nor does connect";
  EXPECT_TRUE(world.fleet->refresh("red", id, 150));
  EXPECT_EQ(end(), seconds(150));
  EXPECT_TRUE(world.fleet->set_timeout("red", id, 20));
  EXPECT_EQ(end(), seconds(20)) << "a timeout does";
  EXPECT_TRUE(world.fleet->set_timeout("red", id, 99'999));
  EXPECT_EQ(end(), seconds(1'000)) << "clamped to the longest run";
  EXPECT_EQ(world.records.load().at(0).end_at - start, seconds(1'000));
  world.clock.advance(seconds(1'001));
  EXPECT_EQ(world.fleet->set_timeout("red", id, 5).error().status, 400);
  EXPECT_EQ(world.fleet->refresh("red", id, 15).error().status, 400);
}
TEST(Fleet, KeepsLeases) {
  World world({.run_seconds_max = 1'000});
  world.run(leases(world));
}

aio::Task<> expires(World& world) {
  const auto killed = co_await make(world, {.template_id = "base", .timeout_seconds = 10});
  const auto paused =
      co_await make(world, {.template_id = "base", .timeout_seconds = 10, .auto_pause = true});
  const auto zero = co_await make(world, {.template_id = "base", .timeout_seconds = 999});
  EXPECT_TRUE(world.fleet->set_timeout("red", zero, 0));
  world.clock.advance(base::Milliseconds(9'999));
  world.fleet->expire_due();
  co_await settle();
  EXPECT_FALSE(world.fleet->get("red", zero)) << "0 is now";
  EXPECT_TRUE(world.fleet->get("red", killed));
  world.host.fail("freeze", 1);
  world.clock.advance(base::Milliseconds(1));
  world.fleet->expire_due();
  co_await settle();
  EXPECT_FALSE(world.fleet->get("red", killed));
  EXPECT_EQ(world.fleet->get("red", paused)->phase, Phase::kRunning) << "its pause was refused";
  world.clock.advance(seconds(10));
  world.fleet->expire_due();
  co_await settle();
  EXPECT_EQ(world.fleet->get("red", paused)->phase, Phase::kPaused);
}
TEST(Fleet, EndsOrPausesWhoseTimeIsOver) {
  World world;
  world.run(expires(world));
}

aio::Task<> adopts(World& world) {
  const auto running = co_await make(world, {.template_id = "base", .timeout_seconds = 100});
  const auto paused = co_await make(world);
  const auto dead = co_await make(world);
  EXPECT_TRUE(co_await world.fleet->pause("red", paused));
  world.host.boxes.erase(dead);
  world.host.boxes["stranger"] = {};
  world.clock.advance(seconds(30));
  world.restart();
  co_await world.fleet->adopt();
  EXPECT_EQ(world.fleet->get("red", running)->phase, Phase::kRunning);
  EXPECT_EQ(world.fleet->get("red", paused)->phase, Phase::kPaused);
  EXPECT_FALSE(world.fleet->get("red", dead));
  EXPECT_FALSE(world.host.boxes.contains("stranger"));
  EXPECT_EQ(world.records.load().size(), 2u);
  world.clock.advance(seconds(70));
  world.fleet->expire_due();
  co_await settle();
  EXPECT_FALSE(world.fleet->get("red", running)) << "its lease went on while nobody was there";
}
TEST(Fleet, TakesOverAfterACrash) {
  World world;
  world.run(adopts(world));
}

// The server dies while `held` is under way, and starts again.
aio::Task<> dies_within(World& world, std::string held, Phase found, std::optional<Phase> then) {
  const auto id = co_await make(world);
  if (held == "thaw") EXPECT_TRUE(co_await world.fleet->pause("red", id));
  UnderWay calls(world, held);
  Slot slot;
  if (held == "freeze") co_await calls.begin(world.fleet->pause("red", id), slot);
  if (held == "thaw") co_await calls.begin(connect_only(world, id, 60), slot);
  if (held == "destroy") co_await calls.begin(world.fleet->kill("red", id), slot);
  EXPECT_EQ(world.records.load().at(0).phase, found);
  co_await calls.cut_off();
  world.restart();
  co_await world.fleet->adopt();
  const auto sandbox = world.fleet->get("red", id);
  EXPECT_EQ(sandbox.ok(), then.has_value());
  if (sandbox) EXPECT_EQ(sandbox->phase, *then);
  EXPECT_EQ(world.host.boxes.contains(id), then.has_value());
}
TEST(Fleet, FinishesOrUndoesWhatACrashInterrupted) {
  struct Case {
    const char* held;
    Phase found;
    std::optional<Phase> then;
  };
  const Case cases[] = {{"freeze", Phase::kPausing, Phase::kPaused},
                        {"thaw", Phase::kResuming, Phase::kPaused},
                        {"destroy", Phase::kKilling, std::nullopt}};
  for (const auto& each : cases) {
    World world;
    world.run(dies_within(world, each.held, each.found, each.then));
  }
}

// The server died, and the next one cannot make the box what its record says.
aio::Task<> keeps_what_it_cannot_change(World& world, bool paused) {
  const auto id = co_await make(world, {.template_id = "base", .timeout_seconds = 100});
  const auto start = world.clock.wall();
  if (paused) EXPECT_TRUE(co_await world.fleet->pause("red", id));
  world.host.boxes[id].frozen = !paused;
  const std::string refused = paused ? "freeze" : "thaw";
  world.host.fail(refused, 1'000'000);
  world.clock.advance(seconds(30));
  world.restart();
  co_await world.fleet->adopt();
  const auto on_record = world.records.load().at(0);
  world.fleet->expire_due();
  for (int tries = 0; tries < 3; ++tries) {
    EXPECT_EQ(world.fleet->get("red", id)->phase, paused ? Phase::kRunning : Phase::kPaused);
    EXPECT_EQ(to_json(world.records.load().at(0)), to_json(on_record)) << "for the next server";
    const auto asked =
        paused ? co_await world.fleet->pause("red", id) : co_await connect_only(world, id, 60);
    EXPECT_EQ(asked.error().status, 503);
    co_await aio::sleep_for(base::Milliseconds(3));
  }
  world.host.fail(refused, 0);
  while (world.fleet->get("red", id)->phase != on_record.phase)
    co_await aio::sleep_for(base::Milliseconds(1));
  EXPECT_EQ(world.host.boxes[id].frozen, paused);
  EXPECT_EQ(world.records.load().at(0).phase, on_record.phase);
  if (!paused) EXPECT_EQ(world.fleet->get("red", id)->end_at, start + seconds(100));
}
TEST(Fleet, KeepsWhatItCannotChangeAndTriesAgain) {
  for (const bool paused : {false, true}) {
    World world({.retry = base::Milliseconds(1)});
    world.run(keeps_what_it_cannot_change(world, paused));
  }
}

// A call fails, and so does what would undo it.
aio::Task<> shows_what_it_is(World& world, bool paused) {
  const auto id = co_await make(world, {.template_id = "base", .timeout_seconds = 100});
  const auto end_at = world.fleet->get("red", id)->end_at;
  if (paused) EXPECT_TRUE(co_await world.fleet->pause("red", id));
  world.host.boxes[id].frozen = !paused;
  world.host.fail("thaw", paused ? 0 : 3);
  world.host.fail("freeze", paused ? 3 : 1);
  world.host.fail("init", paused ? 1 : 0);
  const auto refused =
      paused ? co_await connect_only(world, id, 60) : co_await world.fleet->pause("red", id);
  EXPECT_EQ(refused.error().status, 503);
  EXPECT_EQ(world.fleet->get("red", id)->phase, paused ? Phase::kRunning : Phase::kPaused);
  const Phase wanted = paused ? Phase::kPaused : Phase::kRunning;
  EXPECT_EQ(world.records.load().at(0).phase, wanted) << "for the next server";
  while (world.fleet->get("red", id)->phase != wanted)
    co_await aio::sleep_for(base::Milliseconds(1));
  EXPECT_EQ(world.host.boxes[id].frozen, paused);
  if (!paused) EXPECT_EQ(world.fleet->get("red", id)->end_at, end_at);
}
TEST(Fleet, ShowsWhatASandboxIsWhenNeitherACallNorItsUndoingWorks) {
  for (const bool paused : {false, true}) {
    World world({.retry = base::Milliseconds(1)});
    world.run(shows_what_it_is(world, paused));
  }
}

aio::Task<> obeys_instead(World& world) {
  const auto killed = co_await make(world, {.template_id = "base", .timeout_seconds = 100});
  const auto kept =
      co_await make(world, {.template_id = "base", .timeout_seconds = 100, .auto_pause = true});
  const auto resumed = co_await make(world, {.template_id = "base", .timeout_seconds = 100});
  for (auto& [id, box] : world.host.boxes) box.frozen = true;
  world.host.fail("thaw", 3);
  world.restart();
  co_await world.fleet->adopt();
  EXPECT_TRUE(co_await connect_only(world, resumed, 5'000));
  world.clock.advance(seconds(101));
  while (world.host.boxes.size() == 3) co_await aio::sleep_for(base::Milliseconds(1));
  co_await settle();
  EXPECT_FALSE(world.fleet->get("red", killed)) << "its lease was over";
  EXPECT_EQ(world.fleet->get("red", kept)->phase, Phase::kPaused) << "as it was to be then";
  EXPECT_EQ(world.fleet->get("red", resumed)->phase, Phase::kRunning) << "somebody asked for that";
}
TEST(Fleet, LeavesOffWhenSomethingElseIsAskedForOrItsTimeIsOver) {
  World world({.retry = base::Milliseconds(1)});
  world.run(obeys_instead(world));
}

aio::Task<> destroys_at_last(World& world) {
  world.host.boxes["stranger"] = {};
  world.host.fail("destroy", 2);
  co_await world.fleet->adopt();
  EXPECT_TRUE(world.host.boxes.contains("stranger"));
  for (int i = 0; i < 1'000 && !world.host.boxes.empty(); ++i)
    co_await aio::sleep_for(base::Milliseconds(1));
  EXPECT_TRUE(world.host.boxes.empty());
}
TEST(Fleet, ForgetsNoUnknownBoxThatCouldNotBeDestroyed) {
  World world({.retry = base::Milliseconds(1)});
  world.run(destroys_at_last(world));
}

aio::Task<> dies_creating(World& world, std::string held) {
  UnderWay calls(world, held);
  Slot slot;
  co_await calls.begin(create_only(world), slot);
  EXPECT_EQ(world.records.load().size(), 1u);
  co_await calls.cut_off();
  world.host.boxes["ihalf"] = {};
  world.restart();
  co_await world.fleet->adopt();
  EXPECT_TRUE(world.fleet->all().empty());
  EXPECT_TRUE(world.host.boxes.empty());
  EXPECT_TRUE(world.records.load().empty());
}
TEST(Fleet, LeavesNothingOfACreateThatACrashInterrupted) {
  for (const char* held : {"create", "init"}) {
    World world;
    world.run(dies_creating(world, held));
  }
}

aio::Task<> wakes(World& world) {
  const auto id = co_await make(
      world,
      {.template_id = "base", .timeout_seconds = 20, .auto_pause = true, .auto_resume = true});
  EXPECT_TRUE(co_await world.fleet->pause("red", id));
  EXPECT_TRUE(co_await world.fleet->wake(id));
  EXPECT_EQ(world.fleet->get("red", id)->end_at, world.clock.wall() + seconds(300));
  EXPECT_EQ((co_await world.fleet->wake("inobody")).error().status, 404);
}
TEST(Fleet, WakesForFiveMinutesAtLeast) {
  World world;
  world.run(wakes(world));
}

aio::Task<> kills_all(World& world) {
  co_await make(world);
  const auto paused = co_await make(world);
  EXPECT_TRUE(co_await world.fleet->pause("red", paused));
  co_await world.fleet->kill_all();
  EXPECT_TRUE(world.host.boxes.empty());
  EXPECT_TRUE(world.records.load().empty());
}
TEST(Fleet, KillsAllWhenTold) {
  World world;
  world.run(kills_all(world));
}

aio::Task<> kills_cut_off(World& world, std::string held) {
  const auto id = co_await make(world);
  UnderWay calls(world, held);
  Slot slot;
  if (held == "freeze") co_await calls.begin(world.fleet->pause("red", id), slot);
  if (held == "destroy") co_await calls.begin(world.fleet->kill("red", id), slot);
  if (held == "init") co_await calls.begin(create_only(world), slot);
  calls.cancel();
  world.host.release(held);
  co_await world.fleet->kill_all();
  EXPECT_TRUE(world.host.boxes.empty()) << held;
  EXPECT_TRUE(world.records.load().empty()) << held;
}
TEST(Fleet, KillsAlsoWhatWasCutOffInTheMiddle) {
  for (const char* held : {"freeze", "destroy", "init"}) {
    World world;
    world.run(kills_cut_off(world, held));
  }
}

aio::Task<> retries_kill(World& world) {
  const auto id = co_await make(world);
  world.host.fail("destroy", 1);
  const auto killed = co_await world.fleet->kill("red", id);
  EXPECT_EQ(killed.error().status, 500);
  EXPECT_THAT(killed.error().message, HasSubstr("destroy failed"));
  co_await settle();
  EXPECT_TRUE(world.fleet->all().empty()) << "the second try, by itself";
}
TEST(Fleet, TriesAKillAgainByItself) {
  World world;
  world.run(retries_kill(world));
}

}  // namespace
}  // namespace local_e2b
