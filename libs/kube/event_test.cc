#include <gmock/gmock.h>

#include "libs/base/testing/eventually.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/base/time.h"
#include "libs/kube/event_recorder.h"
#include "libs/kube/recorded_event.h"
#include "libs/kube/testing/fake_server.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using base::Json;
using testing::StartsWith;

const Regarding kBox{kSandboxes, {"team-a", "web"}, "u1"};
const api::Event kCreated{"Normal", "Created", "Create", "from template base"};

class EventBookTest : public testing::Test {
 protected:
  std::optional<EventWrite> record(const Regarding& regarding, const api::Event& event) {
    return book_.record(regarding, event, clock_.now(), clock_.wall());
  }
  Json series_of(const std::optional<EventWrite>& write) {
    return write && !write->create ? write->body["series"] : Json();
  }

  EventSettings settings_{.instance = "controller-0", .each = {3, 5min}, .all = {10, 100ms}};
  EventBook book_{settings_};
  base::FakeClock clock_;
};

TEST_F(EventBookTest, WritesAnEventAsKubernetesReadsIt) {
  const auto write = record(kBox, kCreated);
  ASSERT_TRUE(write && write->create);
  EXPECT_EQ(write->key.space, "team-a");
  EXPECT_THAT(write->key.name, StartsWith("web."));
  Json body = write->body;
  EXPECT_EQ(body["metadata"]["name"], write->key.name);
  body.erase("metadata");
  EXPECT_EQ(body, (Json{{"apiVersion", "events.k8s.io/v1"},
                        {"kind", "Event"},
                        {"eventTime", "2025-12-18T00:00:00.000000Z"},
                        {"type", "Normal"},
                        {"reason", "Created"},
                        {"action", "Create"},
                        {"note", "from template base"},
                        {"regarding",
                         {{"apiVersion", "sandfleet.dev/v1alpha1"},
                          {"kind", "Sandbox"},
                          {"namespace", "team-a"},
                          {"name", "web"},
                          {"uid", "u1"}}},
                        {"reportingController", "sandfleet.dev/controller"},
                        {"reportingInstance", "controller-0"}}));
  // What belongs to no namespace is told in this one.
  EXPECT_EQ(record({kSandboxProviders, {"", "default"}, "u2"}, kCreated)->key.space, "default");
}

TEST_F(EventBookTest, KeepsWithinTheServersLimits) {
  const auto write = record({kSandboxes, {"team-a", std::string(253, 'n')}, "u1"},
                            {"Warning", std::string(200, 'r'), "", std::string(2'000, 'x')});
  ASSERT_TRUE(write);
  EXPECT_LE(write->key.name.size(), 253u);
  EXPECT_EQ(write->body["note"].get<std::string>().size(), 1'024u);
  EXPECT_EQ(write->body["reason"].get<std::string>().size(), 128u);
  EXPECT_EQ(write->body["action"], write->body["reason"]);
}

TEST_F(EventBookTest, CountsRepeatsInASeries) {
  const auto first = record(kBox, kCreated);
  clock_.advance(1s);
  const auto second = record(kBox, kCreated);
  ASSERT_TRUE(second && !second->create);
  EXPECT_EQ(second->key, first->key);
  EXPECT_EQ(series_of(second),
            (Json{{"count", 2}, {"lastObservedTime", "2025-12-18T00:00:01.000000Z"}}));
  for (int repeat = 0; repeat < 100; ++repeat) {
    clock_.advance(100ms);
    EXPECT_EQ(record(kBox, kCreated), std::nullopt);
  }
  EXPECT_TRUE(book_.due(clock_.now()).empty());
  clock_.advance(settings_.refresh);
  const auto due = book_.due(clock_.now());
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(series_of(due[0])["count"], 102);
  EXPECT_EQ(series_of(due[0])["lastObservedTime"], "2025-12-18T00:00:11.000000Z");
  EXPECT_TRUE(book_.due(clock_.now() + 1h).empty());
}

TEST_F(EventBookTest, TellsEventsApartAndBeginsAnewAfterAPause) {
  EXPECT_TRUE(record(kBox, kCreated)->create);
  api::Event other = kCreated;
  other.note = "from template other";
  EXPECT_TRUE(record(kBox, other)->create);
  EXPECT_TRUE(record({kSandboxes, {"team-a", "web"}, "u2"}, kCreated)->create);
  clock_.advance(settings_.series_gap);
  EXPECT_TRUE(record(kBox, kCreated)->create);
}

TEST_F(EventBookTest, BeginsAnewWhenTheServerHasForgotten) {
  const auto first = record(kBox, kCreated);
  book_.forget(first->key);
  const auto second = record(kBox, kCreated);
  ASSERT_TRUE(second && second->create);
  EXPECT_NE(second->key, first->key);
}

TEST_F(EventBookTest, BoundsWhatOneObjectSaysAndWhatAllSay) {
  const auto say = [&](const std::string& uid, int number) {
    api::Event event = kCreated;
    event.note = std::to_string(number);
    return record({kSandboxes, {"team-a", "web"}, uid}, event).has_value();
  };
  int told = 0;
  for (int number = 0; number < 10; ++number) told += say("u1", number) ? 1 : 0;
  EXPECT_EQ(told, 3);
  EXPECT_EQ(book_.suppressed(), 7u);
  clock_.advance(settings_.each.refill);
  EXPECT_TRUE(say("u1", 10));
  EXPECT_FALSE(say("u1", 11));

  told = 0;
  for (int number = 0; number < 20; ++number) told += say("v" + std::to_string(number), 0) ? 1 : 0;
  EXPECT_EQ(told, 9);  // One of the ten was u1's.
  clock_.advance(settings_.all.refill);
  EXPECT_TRUE(say("w", 0));
  EXPECT_FALSE(say("x", 0));
}

TEST_F(EventBookTest, RemembersOnlySoMuch) {
  EventSettings generous = settings_;
  generous.each.burst = generous.all.burst = 1'000'000;
  EventBook book(generous);
  const auto say = [&](int number) {
    const std::string name = std::to_string(number);
    return book.record({kSandboxes, {"team-a", name}, "u" + name}, kCreated, clock_.now(),
                       clock_.wall());
  };
  for (std::size_t number = 0; number < kEventsKept; ++number)
    EXPECT_TRUE(say(static_cast<int>(number)));
  EXPECT_FALSE(say(0)->create);  // It is known, and now the newest.
  // No more objects are given a voice until some have been quiet.
  EXPECT_EQ(say(kEventsKept), std::nullopt);
  clock_.advance(generous.each.refill * 1'000'000);
  EXPECT_TRUE(say(kEventsKept)->create);
}

// --- From a thread of its own.

TEST_F(EventBookTest, IsReadBackAsItWasWritten) {
  Json object = record(kBox, kCreated)->body;
  const auto once = recorded_event_from(object);
  ASSERT_TRUE(once);
  EXPECT_EQ(to_text(once->regarding), "team-a/web");
  EXPECT_EQ(once->regarding_uid, "u1");
  EXPECT_EQ(once->event, kCreated);
  EXPECT_EQ(once->first, clock_.wall());
  EXPECT_EQ(once->last, clock_.wall());
  EXPECT_EQ(once->count, 1);
  clock_.advance(1s);
  object.merge_patch(record(kBox, kCreated)->body);
  const auto twice = recorded_event_from(object);
  EXPECT_EQ(twice->first, clock_.wall() - 1s);
  EXPECT_EQ(twice->last, clock_.wall());
  EXPECT_EQ(twice->count, 2);
}

TEST(RecordedEvent, IsReadAlsoWhereItCameThroughTheOlderApi) {
  const Json older = {{"eventTime", nullptr},
                      {"regarding", {{"name", "web"}}},
                      {"deprecatedFirstTimestamp", "2026-01-01T00:00:00Z"},
                      {"deprecatedLastTimestamp", "2026-01-01T00:01:00Z"},
                      {"deprecatedCount", 7}};
  const auto read = recorded_event_from(older);
  ASSERT_TRUE(read);
  EXPECT_EQ(base::to_rfc3339(read->first), "2026-01-01T00:00:00Z");
  EXPECT_EQ(base::to_rfc3339(read->last), "2026-01-01T00:01:00Z");
  EXPECT_EQ(read->count, 7);
  EXPECT_FALSE(recorded_event_from({{"regarding", {{"kind", "Sandbox"}}}}));
  EXPECT_FALSE(recorded_event_from(Json::array()));
}

TEST(EventRecorder, WritesAndPatchesSeries) {
  FakeServer server([](const net::Request&) { return net::answer(201, "{}"); });
  EventRecorder recorder(server.client(), server.clock(), {.instance = "c"});
  recorder.record(kBox, kCreated);
  recorder.record(kBox, kCreated);
  ASSERT_TRUE(base::eventually([&] { return recorder.stats().written == 2; }));
  const auto asked = server.transport().requests();
  EXPECT_EQ(asked[0].method, "POST");
  EXPECT_THAT(asked[0].url,
              StartsWith("https://api.test/apis/events.k8s.io/v1/namespaces/team-a/events?"));
  EXPECT_EQ(asked[1].method, "PATCH");
  EXPECT_THAT(asked[1].url,
              StartsWith("https://api.test/apis/events.k8s.io/v1/namespaces/team-a/events/web."));
}

TEST(EventRecorder, DropsWhatTheServerWillNotTake) {
  FakeServer server([](const net::Request& request) {
    if (request.method == "POST" && request.url.find("refused") != std::string::npos)
      return net::answer(403, R"({"kind":"Status","reason":"Forbidden"})");
    if (request.method == "PATCH") return net::answer(404, R"({"kind":"Status"})");
    return net::answer(201, "{}");
  });
  EventRecorder recorder(server.client(), server.clock(), {});
  recorder.record({kSandboxes, {"refused", "web"}, "u2"}, kCreated);
  ASSERT_TRUE(base::eventually([&] { return recorder.stats().dropped == 1; }));
  // A series whose event the server has forgotten begins anew.
  recorder.record(kBox, kCreated);
  recorder.record(kBox, kCreated);
  ASSERT_TRUE(base::eventually([&] { return recorder.stats().dropped == 2; }));
  recorder.record(kBox, kCreated);
  ASSERT_TRUE(base::eventually([&] { return recorder.stats().written == 2; }));
}

TEST(EventRecorder, BoundsItsQueueAndEndsWhileTheServerIsAway) {
  FakeServer server([](const net::Request&) { return net::refused_connection(); });
  EventRecorder recorder(server.client(), server.clock(), {.all = {10'000, 100ms}});
  for (std::size_t number = 0; number < kEventQueueMax + 10; ++number)
    recorder.record({kSandboxes, {"team-a", "web"}, "u" + std::to_string(number)}, kCreated);
  EXPECT_GE(recorder.stats().dropped, 9u);
  EXPECT_EQ(recorder.stats().written, 0u);
}

}  // namespace
}  // namespace kube
