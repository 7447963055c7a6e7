#include "libs/kube/informer.h"

#include <gmock/gmock.h>

#include <random>

#include "libs/base/strings.h"
#include "libs/base/testing/eventually.h"
#include "libs/kube/testing/fake_server.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using base::Json;

struct Box {
  api::Metadata metadata;
  std::string color;
};

const api::Key kA{"", "a"};

base::Result<Box> read_box(const Json& object) {
  const auto color = base::text_at(object, "color");
  if (!color) return base::error(base::ErrorCode::kInvalid, "it has no color");
  return Box{identity_of(object), *color};
}

// A collection as an API server keeps it: objects, and a log of changes that it forgets from the
// front. Watches hand over what there is and then end as they are told to.
class Collection {
 public:
  void put(const std::string& name, const std::string& color) {
    std::lock_guard lock(mutex_);
    const bool there = objects_.contains(name);
    objects_[name] = {{"metadata",
                       {{"name", name},
                        {"uid", there ? objects_[name]["metadata"]["uid"] : Json("u" + next())},
                        {"resourceVersion", next()},
                        {"managedFields", {1, 2}}}},
                      {"color", color}};
    if (color.empty()) objects_[name].erase("color");
    log_.push_back({version_, there ? "MODIFIED" : "ADDED", objects_[name]});
    ++versions_[name];
  }
  void remove(const std::string& name) {
    std::lock_guard lock(mutex_);
    if (!objects_.contains(name)) return;
    Json last = objects_[name];
    last["metadata"]["resourceVersion"] = next();
    objects_.erase(name);
    log_.push_back({version_, "DELETED", std::move(last)});
    ++versions_[name];
  }
  // Forgets its log, and with it every continue token.
  void compact() {
    std::lock_guard lock(mutex_);
    compacted_ = version_;
    log_.clear();
  }
  void restore_from_backup(int version) {
    std::lock_guard lock(mutex_);
    version_ = version;
    log_.clear();
    for (auto& [name, object] : objects_) object["metadata"]["resourceVersion"] = "1";
  }
  Json object(const std::string& name) const {
    std::lock_guard lock(mutex_);
    return objects_.at(name);
  }
  std::map<std::string, std::string> colors() const {
    std::lock_guard lock(mutex_);
    std::map<std::string, std::string> all;
    for (const auto& [name, object] : objects_) all[name] = object.value("color", "");
    return all;
  }
  int versions_of(const std::string& name) {
    std::lock_guard lock(mutex_);
    return versions_[name];
  }

  net::Answer answer(const net::Request& request) {
    std::lock_guard lock(mutex_);
    const std::string after = parameter(request, "resourceVersion");
    if (!parameter(request, "watch").empty())
      return parameter(request, "sendInitialEvents").empty() ? watch(after) : stream();
    return list(parameter(request, "limit"), parameter(request, "continue"));
  }

  // Of the fake, set before anybody asks.
  bool streams = false;
  net::Answer::End watch_end = net::Answer::End::kSilence;
  int events_a_watch = 1'000;

 private:
  struct Change {
    int version;
    const char* type;
    Json object;
  };

  std::string next() { return std::to_string(++version_); }

  static std::string parameter(const net::Request& request, const std::string& name) {
    for (const std::string& pair : base::split(request.url.substr(request.url.find('?') + 1), '&'))
      if (pair.starts_with(name + "=")) return pair.substr(name.size() + 1);
    return "";
  }
  static net::Answer expired() {
    return net::answer(410, R"({"kind":"Status","reason":"Expired","code":410})");
  }
  static std::string line(const char* type, const Json& object) {
    return base::to_text(Json{{"type", type}, {"object", object}}) + "\n";
  }

  // A continue token is the version that the list began at, and the last name told.
  net::Answer list(const std::string& limit, const std::string& token) const {
    const std::size_t dash = token.find('-');
    if (!token.empty() && std::stoi(token.substr(0, dash)) < compacted_) return expired();
    Json metadata = {
        {"resourceVersion", token.empty() ? std::to_string(version_) : token.substr(0, dash)}};
    Json items = Json::array();
    const auto first =
        token.empty() ? objects_.begin() : objects_.upper_bound(token.substr(dash + 1));
    for (auto each = first; each != objects_.end(); ++each) {
      if (!limit.empty() && items.size() == std::stoul(limit)) {
        metadata["continue"] = metadata["resourceVersion"].get<std::string>() + "-" +
                               base::text_at(items.back()["metadata"], "name").value_or("");
        break;
      }
      items.push_back(each->second);
    }
    return net::answer(200, base::to_text(Json{{"metadata", metadata}, {"items", items}}));
  }
  net::Answer watch(const std::string& after) const {
    if (std::stoi(after) < compacted_)
      return {
          .pieces = {line("ERROR", {{"kind", "Status"}, {"reason", "Expired"}, {"code", 410}})}};
    net::Answer answer{.end = watch_end};
    for (const Change& change : log_)
      if (change.version > std::stoi(after) &&
          static_cast<int>(answer.pieces.size()) < events_a_watch)
        answer.pieces.push_back(line(change.type, change.object));
    return answer;
  }
  net::Answer stream() const {
    if (!streams)
      return net::answer(422, R"({"kind":"Status","reason":"Invalid","message":"forbidden"})");
    net::Answer answer{.end = net::Answer::End::kSilence};
    for (const auto& [name, object] : objects_) answer.pieces.push_back(line("ADDED", object));
    answer.pieces.push_back(
        line("BOOKMARK", {{"metadata",
                           {{"resourceVersion", std::to_string(version_)},
                            {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}}));
    return answer;
  }

  mutable std::mutex mutex_;
  std::map<std::string, Json> objects_;
  std::vector<Change> log_;
  std::map<std::string, int> versions_;
  int version_ = 100, compacted_ = 0;
};

class InformerTest : public testing::Test {
 protected:
  ReflectorSettings settings() {
    return {.course = {.streaming = false, .backoff_min = 1ms, .backoff_max = 5ms},
            .page_size = 2,
            .silence_max = 20ms,
            .stream_silence_max = 20ms};
  }
  void start(ReflectorSettings settings) {
    informer_.emplace(server_.client(), server_.clock(), kSandboxes, Scope{}, read_box,
                      std::move(settings));
    informer_->on_change([this](const api::Key& key) {
      std::lock_guard lock(mutex_);
      ++told_[key.name];
    });
    informer_->start();
  }
  std::map<std::string, std::string> colors() const {
    std::map<std::string, std::string> all;
    for (const auto& box : informer_->store().all()) all[box->metadata.key.name] = box->color;
    return all;
  }
  bool comes_true() {
    return base::eventually([&] { return colors() == collection_.colors(); });
  }
  bool has_listed(std::uint64_t times) {
    return base::eventually([&] { return informer_->stats().lists == times; });
  }
  int told(const std::string& name) {
    std::lock_guard lock(mutex_);
    return told_[name];
  }
  bool was_told(const std::string& name, int times) {
    return base::eventually([&] { return told(name) == times; });
  }
  std::size_t asked(std::string_view part) { return server_.transport().count("GET", part); }

  Collection collection_;
  FakeServer server_{[this](const net::Request& request) { return collection_.answer(request); }};
  std::mutex mutex_;
  std::map<std::string, int> told_;
  std::optional<Informer<Box>> informer_;
};

TEST_F(InformerTest, ListsInPagesAndThenFollows) {
  for (const char* name : {"a", "b", "c", "d", "e"}) collection_.put(name, "red");
  start(settings());
  ASSERT_TRUE(informer_->wait_until_synced(60s, {}));
  EXPECT_TRUE(comes_true());
  EXPECT_EQ(asked("continue="), 2u);
  collection_.put("a", "blue");
  collection_.remove("b");
  collection_.put("f", "green");
  EXPECT_TRUE(comes_true());
  EXPECT_TRUE(was_told("a", 2));
  EXPECT_TRUE(was_told("c", 1));
  EXPECT_TRUE(has_listed(1));
}

TEST_F(InformerTest, ListsWholeWhenTheContinueTokenExpires) {
  for (const char* name : {"a", "b", "c", "d", "e"}) collection_.put(name, "red");
  server_.transport().play([this](const net::Request& request) {
    if (request.url.find("continue=") != std::string::npos && asked("continue=") == 0) {
      collection_.put("c", "blue");
      collection_.compact();
    }
    return collection_.answer(request);
  });
  start(settings());
  EXPECT_TRUE(comes_true());
  EXPECT_TRUE(has_listed(1));
  EXPECT_EQ(asked("continue="), 1u);
}

TEST_F(InformerTest, ListsAnewWhenTheServerForgotWhereItWas) {
  collection_.put("a", "red");
  collection_.put("gone", "red");
  start(settings());
  ASSERT_TRUE(comes_true());
  server_.transport().play([](const net::Request&) { return net::refused_connection(); });
  collection_.remove("gone");
  collection_.put("b", "red");
  collection_.compact();
  server_.transport().play([this](const net::Request& r) { return collection_.answer(r); });
  EXPECT_TRUE(comes_true());
  EXPECT_TRUE(was_told("a", 1));  // Nothing happened to it.
  EXPECT_TRUE(was_told("gone", 2));
}

TEST_F(InformerTest, NoticesThatTheServerWasRestoredFromABackup) {
  collection_.put("a", "red");
  start(settings());
  ASSERT_TRUE(comes_true());
  collection_.restore_from_backup(50);
  collection_.put("b", "red");
  EXPECT_TRUE(comes_true());
  EXPECT_TRUE(has_listed(2));
}

TEST_F(InformerTest, ListsByStreamOrFindsThatItCannot) {
  for (const bool offered : {true, false}) {
    collection_.streams = offered;
    collection_.put("a", offered ? "red" : "blue");
    ReflectorSettings streaming = settings();
    streaming.course.streaming = true;
    start(streaming);
    EXPECT_TRUE(comes_true());
    EXPECT_TRUE(has_listed(1));
  }
  EXPECT_EQ(asked("sendInitialEvents"), 2u);
  EXPECT_EQ(asked("sandboxes?limit=2"), 1u);
}

TEST_F(InformerTest, KeepsTheLastVersionThatItCouldRead) {
  collection_.put("a", "red");
  start(settings());
  ASSERT_TRUE(comes_true());
  collection_.put("a", "");
  collection_.put("b", "red");
  ASSERT_TRUE(base::eventually([&] { return colors().contains("b"); }));
  EXPECT_EQ(colors()["a"], "red");
  server_.transport().play([](const net::Request&) { return net::refused_connection(); });
  collection_.put("b", "green");
  collection_.compact();
  server_.transport().play([this](const net::Request& r) { return collection_.answer(r); });
  ASSERT_TRUE(has_listed(2));
  EXPECT_EQ(colors()["a"], "red");
  collection_.put("a", "blue");
  EXPECT_TRUE(comes_true());
}

// ---- Its own writes

TEST_F(InformerTest, TellsNobodyOfItsOwnWrites) {
  collection_.put("a", "red");
  start(settings());
  ASSERT_TRUE(was_told("a", 1));
  for (const bool event_first : {true, false}) {
    const std::string color = event_first ? "blue" : "green";
    const auto written = informer_->write(kA, [&]() -> Answer<Json> {
      collection_.put("a", color);
      if (event_first) {
        EXPECT_TRUE(comes_true());
      }
      return collection_.object("a");
    });
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(written->color, color);
    EXPECT_EQ(colors()["a"], color);
  }
  collection_.put("b", "red");  // Once this is told, so would have been what came before.
  ASSERT_TRUE(was_told("b", 1));
  EXPECT_EQ(told("a"), 1);
}

TEST_F(InformerTest, TellsWhatOthersDidWhileItWrote) {
  collection_.put("a", "red");
  start(settings());
  ASSERT_TRUE(was_told("a", 1));
  ASSERT_TRUE(informer_->write(kA, [&]() -> Answer<Json> {
    collection_.put("a", "blue");  // Another hand's.
    EXPECT_TRUE(comes_true());
    EXPECT_EQ(told("a"), 1) << "whose it was is not known yet";
    collection_.put("a", "green");
    EXPECT_TRUE(comes_true());
    return collection_.object("a");
  }));
  EXPECT_EQ(told("a"), 2);
  EXPECT_EQ(colors()["a"], "green");
}

TEST_F(InformerTest, TellsOfAWriteThatNobodyAnswered) {
  collection_.put("a", "red");
  start(settings());
  ASSERT_TRUE(was_told("a", 1));
  EXPECT_FALSE(informer_->write(kA, [&]() -> Answer<Json> {
    collection_.put("a", "blue");
    EXPECT_TRUE(comes_true());
    return refusal_of(base::error(base::ErrorCode::kUnavailable, "no answer"));
  }));
  EXPECT_EQ(told("a"), 2);
}

TEST(OwnWrites, AreAllToEndBeforeOthersAreKnown) {
  OwnWrites writes;
  EXPECT_TRUE(writes.is_news(kA, "1")) << "nobody of us writes";
  writes.begin(kA);
  writes.begin(kA);
  EXPECT_FALSE(writes.is_news(kA, "3"));
  EXPECT_FALSE(writes.is_news(kA, "2"));
  EXPECT_TRUE(writes.is_news({"", "b"}, "2"));
  EXPECT_FALSE(writes.end(kA, "2")) << "the other one may have made 3";
  EXPECT_FALSE(writes.end(kA, "3"));
  writes.begin(kA);
  EXPECT_FALSE(writes.is_news(kA, "4"));
  EXPECT_TRUE(writes.end(kA, "5"));
  EXPECT_TRUE(writes.is_news(kA, "6"));
}

TEST_F(InformerTest, TellsHowEachLegEnded) {
  std::vector<std::pair<bool, int>> told;  // Whether it worked, and failures in a row.
  auto telling = settings();
  telling.on_leg = [&](const LegEnd& end) {
    std::lock_guard lock(mutex_);
    told.emplace_back(end.refusal == nullptr, end.failures);
  };
  server_.transport().play([](const net::Request&) { return net::refused_connection(); });
  start(telling);
  const auto has = [&](std::pair<bool, int> end) {
    return base::eventually([&] {
      std::lock_guard lock(mutex_);
      return std::ranges::find(told, end) != told.end();
    });
  };
  EXPECT_TRUE(has({false, 1}));
  EXPECT_TRUE(has({false, 2}));
  server_.transport().play([this](const net::Request& r) { return collection_.answer(r); });
  EXPECT_TRUE(base::eventually([&] {
    std::lock_guard lock(mutex_);
    return told.back().first;
  }));
  informer_.reset();
}

TEST_F(InformerTest, EndsAtOnceWhileAWatchIsSilent) {
  collection_.put("a", "red");
  ReflectorSettings patient = settings();
  patient.silence_max = 1h;
  start(patient);
  ASSERT_TRUE(base::eventually([&] { return asked("watch=true") == 1; }));
  const auto before = std::chrono::steady_clock::now();
  informer_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 60s);
}

// Whatever happens to the connection, the store comes to what the server has, and no change is told
// that was not one.
class InformerWeather : public InformerTest, public testing::WithParamInterface<int> {
 protected:
  InformerWeather() {
    collection_.watch_end = GetParam() % 2 == 0 ? net::Answer::End::kCut : net::Answer::End::kWhole;
    collection_.events_a_watch = 1 + GetParam() % 3;
    server_.transport().play([this](const net::Request& request) {
      switch (weather_() % 12) {
        case 0:
          return net::refused_connection();
        case 1:
          return net::lost_answer();
        case 2:
          return net::answer(503);
        case 3:
          return net::answer(429, "", {{"Retry-After", "0"}});
        default:
          return collection_.answer(request);
      }
    });
  }
  ~InformerWeather() override { informer_.reset(); }  // It asks for the weather.

  std::mt19937 weather_{static_cast<unsigned>(GetParam()) + 1'000};  // The informer's thread's.
};

TEST_P(InformerWeather, LosesNothingAndTellsNothingTwice) {
  std::mt19937 dice(static_cast<unsigned>(GetParam()));
  const auto one_in = [&](unsigned count) { return dice() % count == 0; };
  start(settings());
  const std::vector<std::string> names = {"a", "b", "c", "d", "e", "f"};
  for (int step = 0; step < 300; ++step) {
    const std::string& name = names[dice() % names.size()];
    if (one_in(3))
      collection_.remove(name);
    else
      collection_.put(name, std::to_string(step));
    if (one_in(40)) collection_.compact();
    if (one_in(20)) ASSERT_TRUE(comes_true());
  }
  ASSERT_TRUE(comes_true());
  for (const std::string& name : names)
    EXPECT_LE(told(name), collection_.versions_of(name)) << name;
}

INSTANTIATE_TEST_SUITE_P(, InformerWeather, testing::Range(0, 12));

}  // namespace
}  // namespace kube
