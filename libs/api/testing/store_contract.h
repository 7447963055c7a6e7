#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "libs/api/annotations.h"
#include "libs/api/resource_store.h"
#include "libs/base/testing/eventually.h"

// What every ResourceStore promises to the reconciler: a folder of manifests, and a cluster.
// Include in one test file and instantiate StoreContract.
namespace api {

// One store and the people who use it.
struct StoreWorld {
  virtual ~StoreWorld() = default;
  virtual ResourceStore& store() = 0;
  // The store goes, as in a crash, and another one begins where it was.
  virtual void reopen() = 0;
  virtual std::string space() const { return "default"; }
  virtual std::string provider_name() const { return "default"; }

  // What people do: the specs that they write, and what they take away.
  virtual void declare_sandbox(const std::string& name, const base::Json& spec) = 0;
  virtual void remove_sandbox(const std::string& name) = 0;
  virtual void declare_provider(const base::Json& spec) = 0;
  virtual void remove_provider() = 0;
  virtual void declare_secret(const std::string& name, const std::string& key,
                              const std::string& value) = 0;
  // What the store told of changes: keys of Sandboxes, and of providers without a namespace.
  virtual std::vector<Key> told() = 0;
  // What people are told.
  virtual std::vector<Event> events_of(const Sandbox& sandbox) = 0;
  // Lets what people did reach the store.
  virtual void settle() {}
};

// What a store told, from whichever thread.
class Told {
 public:
  void listen_to(ResourceStore& store) {
    store.on_sandbox_change([this](const Key& key) { add(key); });
    store.on_provider_change([this](const std::string& name) { add({"", name}); });
  }
  std::vector<Key> all() const {
    std::lock_guard lock(mutex_);
    return keys_;
  }

 private:
  void add(const Key& key) {
    std::lock_guard lock(mutex_);
    keys_.push_back(key);
  }
  mutable std::mutex mutex_;
  std::vector<Key> keys_;
};

struct StoreKind {
  const char* name;
  std::function<std::unique_ptr<StoreWorld>()> make;
};
inline void PrintTo(const StoreKind& kind, std::ostream* out) { *out << kind.name; }

class StoreContract : public testing::TestWithParam<StoreKind> {
 protected:
  using Pointer = std::shared_ptr<const Sandbox>;

  ResourceStore& store() { return world_->store(); }
  Key key(const std::string& name = "a") const { return {world_->space(), name}; }

  bool becomes(const std::function<bool()>& fact) {
    return base::eventually([&] {
      world_->settle();
      return fact();
    });
  }
  void declare(const std::string& name = "a", base::Json spec = base::Json::object()) {
    spec["template"] = {{"id", "base"}};
    spec["providerRef"] = {{"name", world_->provider_name()}};
    world_->declare_sandbox(name, spec);
  }
  Pointer declared(const std::string& name = "a") {
    declare(name);
    EXPECT_TRUE(becomes([&] { return store().find_sandbox(key(name)) != nullptr; }));
    return store().find_sandbox(key(name));
  }
  static Expected exactly(const Sandbox& sandbox) {
    return {sandbox.metadata.uid, sandbox.metadata.resource_version};
  }
  static SandboxStatus bound_to(const std::string& id, std::int64_t epoch) {
    SandboxStatus status{.sandbox_id = id, .epoch = epoch, .incarnation = 1};
    set_condition(status.conditions, {.type = "Ready",
                                      .status = "False",
                                      .reason = "Creating",
                                      .message = "the provider is creating it",
                                      .observed_generation = 1,
                                      .last_transition = base::WallTime(base::Seconds(1'000))});
    return status;
  }
  static base::Json a_provider() {
    return {{"api", {{"url", "http://127.0.0.1:1"}}},
            {"data", {{"url", "http://127.0.0.1:2"}, {"routing", "Header"}}}};
  }
  // Finalizer and attempt on record, in one write.
  Pointer begun(const Attempt& attempt, const std::string& name = "a") {
    const Pointer before = declared(name);
    const auto written = store().update_metadata(
        key(name), exactly(*before), {{std::string(kAttemptAnnotation), to_text(attempt)}},
        {std::string(kFinalizer)});
    EXPECT_TRUE(written) << written.error().message;
    return store().find_sandbox(key(name));
  }
  base::Result<Sandbox> update_status(const Key& key, const Expected& expected,
                                      const SandboxStatus& status) {
    return store().update_status(key, expected, status, ResourceStore::Durability::kNow);
  }
  template <typename T>
  static base::ErrorCode code_of(const base::Result<T>& result) {
    EXPECT_FALSE(result);
    return result ? base::ErrorCode::kCancelled : result.error().code;
  }

  const Attempt attempt_{"0123456789abcdef0123456789abcdef", 1, 0};
  std::unique_ptr<StoreWorld> world_ = GetParam().make();
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreContract);

TEST_P(StoreContract, ShowsWhatPeopleDeclareWithDefaults) {
  const auto found = declared();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->metadata.key, key());
  EXPECT_NE(found->metadata.uid, "");
  EXPECT_NE(found->metadata.resource_version, "");
  EXPECT_EQ(found->metadata.generation, 1);
  EXPECT_TRUE(found->metadata.created);
  EXPECT_FALSE(found->deleting());
  EXPECT_EQ(found->spec.template_id, "base");
  EXPECT_EQ(found->spec.keep_alive.timeout, base::Seconds(300));
  EXPECT_EQ(found->status, SandboxStatus{});
  EXPECT_THAT(store().sandboxes(), testing::Contains(found));
  const auto got = store().get_sandbox(key());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(*got, *found);
  const auto none = store().get_sandbox(key("none"));
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_EQ(*none, std::nullopt);
  EXPECT_EQ(store().find_sandbox(key("none")), nullptr);
}

TEST_P(StoreContract, FollowsEditsOfTheSameObject) {
  const auto before = declared();
  declare("a", {{"desiredState", "Paused"}});
  ASSERT_TRUE(becomes(
      [&] { return store().find_sandbox(key())->spec.desired_state == DesiredState::kPaused; }));
  const auto after = store().find_sandbox(key());
  EXPECT_EQ(after->metadata.uid, before->metadata.uid);
  EXPECT_EQ(after->metadata.generation, 2);
  EXPECT_NE(after->metadata.resource_version, before->metadata.resource_version);
}

TEST_P(StoreContract, ShowsItsOwnWritesAtOnceAndAfterACrash) {
  const auto before = begun(attempt_);
  const auto written = update_status(key(), exactly(*before), bound_to("sb-1", 1));
  ASSERT_TRUE(written) << written.error().message;
  const auto found = store().find_sandbox(key());
  EXPECT_EQ(*found, *written);
  EXPECT_EQ(found->status, bound_to("sb-1", 1));
  EXPECT_EQ(found->spec, before->spec);
  EXPECT_EQ(found->metadata.generation, 1);
  EXPECT_EQ(attempt_of(found->metadata), attempt_);
  EXPECT_THAT(found->metadata.finalizers, testing::ElementsAre(kFinalizer));
  world_->reopen();
  ASSERT_TRUE(becomes([&] { return store().find_sandbox(key()) != nullptr; }));
  EXPECT_EQ(*store().find_sandbox(key()), *written);
}

TEST_P(StoreContract, RefusesWritesWhosePreconditionFailed) {
  const auto before = begun(attempt_);
  const SandboxStatus status = bound_to("", 0);
  ASSERT_TRUE(update_status(key(), exactly(*before), status));
  using Code = base::ErrorCode;
  const std::string& uid = before->metadata.uid;
  EXPECT_EQ(code_of(update_status(key(), exactly(*before), bound_to("x", 1))), Code::kConflict);
  EXPECT_EQ(code_of(store().update_metadata(key(), exactly(*before), {}, {})), Code::kConflict);
  EXPECT_EQ(code_of(update_status(key(), {"another"}, status)), Code::kConflict);
  EXPECT_EQ(code_of(store().update_metadata(key(), {"another"}, {}, {})), Code::kConflict);
  EXPECT_EQ(code_of(store().bind(key(), "another", attempt_, bound_to("x", 1))), Code::kConflict);
  EXPECT_EQ(code_of(store().delete_sandbox(key(), "another")), Code::kConflict);
  EXPECT_EQ(code_of(update_status(key("none"), {uid}, status)), Code::kNotFound);
  EXPECT_EQ(code_of(store().delete_sandbox(key("none"), uid)), Code::kNotFound);
  EXPECT_EQ(store().find_sandbox(key())->status, status);
}

TEST_P(StoreContract, MakesNoNewVersionOfWhatIsAsItWas) {
  const auto before = begun(attempt_);
  ASSERT_TRUE(update_status(key(), exactly(*before), bound_to("sb-1", 1)));
  const auto bound = store().find_sandbox(key());
  ASSERT_TRUE(update_status(key(), exactly(*bound), bound->status));
  ASSERT_TRUE(store().update_metadata(key(), exactly(*bound), bound->metadata.annotations,
                                      bound->metadata.finalizers));
  EXPECT_EQ(store().find_sandbox(key())->metadata.resource_version,
            bound->metadata.resource_version);
}

TEST_P(StoreContract, TakesAnnotationsAndFinalizersAwayAgain) {
  const auto begun_one = begun(attempt_);
  auto annotations = begun_one->metadata.annotations;
  annotations["tests.example/mine"] = "1";
  ASSERT_TRUE(store().update_metadata(key(), exactly(*begun_one), annotations,
                                      {std::string(kFinalizer), "tests.example/hold"}));
  const auto both = store().find_sandbox(key());
  EXPECT_EQ(both->metadata.annotations, annotations);
  EXPECT_THAT(both->metadata.finalizers, testing::ElementsAre(kFinalizer, "tests.example/hold"));
  annotations.erase(std::string(kAttemptAnnotation));
  ASSERT_TRUE(
      store().update_metadata(key(), exactly(*both), annotations, both->metadata.finalizers));
  const auto less = store().find_sandbox(key());
  EXPECT_EQ(less->metadata.annotations, annotations);
  ASSERT_TRUE(store().update_metadata(key(), exactly(*less), annotations, {"tests.example/hold"}));
  EXPECT_THAT(store().find_sandbox(key())->metadata.finalizers,
              testing::ElementsAre("tests.example/hold"));
  const auto last = store().find_sandbox(key());
  ASSERT_TRUE(store().update_metadata(key(), exactly(*last), annotations, {}));
}

TEST_P(StoreContract, BindsOnlyWhatHasThatAttemptOnRecordAndNoNewerSandbox) {
  const std::string uid = begun(attempt_)->metadata.uid;
  using Code = base::ErrorCode;
  const Attempt another{attempt_.nonce, 1, 1};
  EXPECT_EQ(code_of(store().bind(key(), uid, another, bound_to("sb-1", 1))), Code::kConflict);
  const auto bound = store().bind(key(), uid, attempt_, bound_to("sb-1", 1));
  ASSERT_TRUE(bound) << bound.error().message;
  EXPECT_EQ(store().find_sandbox(key())->status, bound_to("sb-1", 1));
  EXPECT_EQ(code_of(store().bind(key(), uid, attempt_, bound_to("sb-2", 1))), Code::kConflict);
  // An id never changes within an epoch, whoever writes it.
  EXPECT_EQ(code_of(update_status(key(), {uid}, bound_to("sb-2", 1))), Code::kInvalid);
  const auto again = store().bind(key(), uid, attempt_, bound_to("sb-2", 2));
  ASSERT_TRUE(again) << again.error().message;
  world_->reopen();
  ASSERT_TRUE(becomes([&] { return store().find_sandbox(key()) != nullptr; }));
  EXPECT_EQ(store().find_sandbox(key())->status, bound_to("sb-2", 2));
}

TEST_P(StoreContract, KeepsADeletedObjectUntilItsFinalizerGoes) {
  const std::string uid = begun(attempt_)->metadata.uid;
  world_->remove_sandbox("a");
  ASSERT_TRUE(becomes([&] { return store().find_sandbox(key())->deleting(); }));
  const auto leaving = store().find_sandbox(key());
  EXPECT_EQ(leaving->metadata.uid, uid);
  const auto let_go =
      store().update_metadata(key(), exactly(*leaving), leaving->metadata.annotations, {});
  ASSERT_TRUE(let_go) << let_go.error().message;
  EXPECT_TRUE(becomes([&] { return !store().find_sandbox(key()); }));
  EXPECT_EQ(*store().get_sandbox(key()), std::nullopt);
  const auto next = declared();
  EXPECT_NE(next->metadata.uid, uid);
  EXPECT_EQ(attempt_of(next->metadata), std::nullopt);
  EXPECT_EQ(code_of(store().bind(key(), uid, attempt_, bound_to("sb-1", 1))),
            base::ErrorCode::kConflict);
}

TEST_P(StoreContract, DeletesAsAUserWould) {
  const std::string uid = begun(attempt_)->metadata.uid;
  ASSERT_TRUE(store().delete_sandbox(key(), uid));
  ASSERT_TRUE(becomes([&] { return store().find_sandbox(key())->deleting(); }));
  EXPECT_TRUE(store().delete_sandbox(key(), uid));
  const auto leaving = store().find_sandbox(key());
  ASSERT_TRUE(store().update_metadata(key(), exactly(*leaving), leaving->metadata.annotations, {}));
  EXPECT_TRUE(becomes([&] { return !store().find_sandbox(key()); }));
}

TEST_P(StoreContract, TellsOfWhatPeopleChange) {
  const auto tells_of = [&](const Key& changed) {
    return becomes([&] { return std::ranges::count(world_->told(), changed) > 0; });
  };
  declare();
  EXPECT_TRUE(tells_of(key()));
  world_->declare_provider(a_provider());
  EXPECT_TRUE(tells_of({"", world_->provider_name()}));
}

TEST_P(StoreContract, TellsNobodyOfItsOwnWrites) {
  const auto tellings_of = [&](const Key& changed) {
    return std::ranges::count(world_->told(), changed);
  };
  const auto before = begun(attempt_);
  ASSERT_TRUE(becomes([&] { return tellings_of(key()) > 0; }));
  const auto bound =
      store().bind(key(), before->metadata.uid, attempt_, bound_to("sb-1", attempt_.epoch));
  ASSERT_TRUE(bound) << bound.error().message;
  SandboxStatus status = bound->status;
  status.state = "Running";
  ASSERT_TRUE(update_status(key(), exactly(*bound), status));
  declare("b");
  ASSERT_TRUE(becomes([&] { return tellings_of(key("b")) > 0; }));
  EXPECT_EQ(tellings_of(key()), 1);
  ASSERT_TRUE(store().delete_sandbox(key(), before->metadata.uid));
  EXPECT_TRUE(becomes([&] { return tellings_of(key()) > 1; })) << "that is not for who asked";
}

TEST_P(StoreContract, TellsOfARequestToWakeWhoeverWroteIt) {
  const auto before = begun(attempt_);
  const auto tellings = [&] { return std::ranges::count(world_->told(), key()); };
  ASSERT_TRUE(becomes([&] { return tellings() > 0; }));
  const auto told = tellings();
  const auto asked = store().request_wake(key(), exactly(*before), "now");
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_TRUE(becomes([&] { return tellings() > told; }));
  const auto after = store().find_sandbox(key());
  EXPECT_EQ(request_to_wake(after->metadata), "now");
  EXPECT_EQ(attempt_of(after->metadata), attempt_) << "all else stays";
  EXPECT_EQ(code_of(store().request_wake(key(), exactly(*before), "later")),
            base::ErrorCode::kConflict)
      << "somebody was faster";
  EXPECT_EQ(code_of(store().request_wake(key(), {"another"}, "later")), base::ErrorCode::kConflict);
  EXPECT_EQ(code_of(store().request_wake(key("nobody"), {"another"}, "later")),
            base::ErrorCode::kNotFound);
}

TEST_P(StoreContract, FindsByUidAndByProvider) {
  const auto one = declared();
  ASSERT_TRUE(one);
  EXPECT_EQ(store().find_by_uid(one->metadata.uid), one);
  EXPECT_EQ(store().find_by_uid("nobody's"), nullptr);
  EXPECT_THAT(store().sandboxes_of(world_->provider_name()), testing::ElementsAre(one));
  EXPECT_THAT(store().sandboxes_of("another"), testing::IsEmpty());
}

TEST_P(StoreContract, ReadsOneKeyOfASecret) {
  world_->declare_secret("keys", "apiKey", "CANARY-123");
  const auto read = [&](const std::string& name, const std::string& key) {
    return store().get_secret({world_->space(), name}, key);
  };
  ASSERT_TRUE(becomes([&] { return read("keys", "apiKey").ok(); }));
  EXPECT_EQ(*read("keys", "apiKey"), "CANARY-123");
  EXPECT_EQ(code_of(read("keys", "other")), base::ErrorCode::kNotFound);
  EXPECT_EQ(code_of(read("none", "apiKey")), base::ErrorCode::kNotFound);
}

TEST_P(StoreContract, KeepsTheStatusOfAProvider) {
  const std::string name = world_->provider_name();
  world_->declare_provider(a_provider());
  ASSERT_TRUE(becomes([&] { return store().find_provider(name) != nullptr; }));
  const auto before = store().find_provider(name);
  EXPECT_EQ(before->spec.data_url, "http://127.0.0.1:2");
  EXPECT_EQ(before->spec.settle, base::Seconds(90));
  EXPECT_THAT(store().providers(), testing::Contains(before));
  const Expected expected{before->metadata.uid, before->metadata.resource_version};
  const auto updated = store().update_provider_status(name, expected, {.observed_generation = 1});
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(store().find_provider(name)->status.observed_generation, 1);
  EXPECT_EQ(code_of(store().update_provider_status(name, expected, {.observed_generation = 2})),
            base::ErrorCode::kConflict);
  EXPECT_EQ(code_of(store().update_provider_status(name, {"another"}, {})),
            base::ErrorCode::kConflict);
  EXPECT_EQ(code_of(store().update_provider_status("none", expected, {})),
            base::ErrorCode::kNotFound);
}

TEST_P(StoreContract, KeepsADeletedProviderWhileASandboxNeedsIt) {
  const std::string name = world_->provider_name();
  world_->declare_provider(a_provider());
  ASSERT_TRUE(becomes([&] { return store().find_provider(name) != nullptr; }));
  const auto provider = store().find_provider(name);
  ASSERT_TRUE(store().hold_provider(name, provider->metadata.uid, true));
  ASSERT_TRUE(store().hold_provider(name, provider->metadata.uid, true));
  begun(attempt_);
  world_->remove_provider();
  ASSERT_TRUE(becomes([&] { return store().find_provider(name)->metadata.deleted.has_value(); }));
  ASSERT_TRUE(store().hold_provider(name, provider->metadata.uid, true));
  EXPECT_NE(store().find_provider(name), nullptr);

  world_->remove_sandbox("a");
  ASSERT_TRUE(becomes([&] { return store().find_sandbox(key())->deleting(); }));
  const auto leaving = store().find_sandbox(key());
  ASSERT_TRUE(store().update_metadata(key(), exactly(*leaving), leaving->metadata.annotations, {}));
  ASSERT_TRUE(becomes([&] { return !store().find_sandbox(key()); }));
  ASSERT_TRUE(store().hold_provider(name, provider->metadata.uid, false));
  EXPECT_TRUE(becomes([&] { return !store().find_provider(name); }));
}

TEST_P(StoreContract, TellsPeopleOfEvents) {
  const auto sandbox = declared();
  const Event first{"Normal", "Created", "Create", "E2B sandbox sb-1"};
  const Event second{"Warning", "BindFailed", "Bind", "the server did not answer"};
  store().record_event(*sandbox, first);
  store().record_event(*sandbox, second);
  EXPECT_TRUE(becomes([&] { return world_->events_of(*sandbox).size() >= 2; }));
  EXPECT_THAT(world_->events_of(*sandbox), testing::UnorderedElementsAre(first, second));
}

TEST_P(StoreContract, KeepsReleaseRecordsOfEachProvider) {
  const std::string one = world_->provider_name();
  const auto release = [&](const std::string& id) {
    return ResourceStore::Release{id, "uid", one, "Leave", base::WallTime(base::Seconds(1'000))};
  };
  EXPECT_THAT(*store().releases(one), testing::IsEmpty());
  ASSERT_TRUE(store().add_release(release("sb-0")));
  ASSERT_TRUE(store().add_release(release("sb-1")));
  ASSERT_TRUE(store().add_release(release("sb-1")));  // Again is no second one.
  world_->reopen();
  const auto kept = store().releases(one);
  ASSERT_TRUE(kept) << kept.error().message;
  ASSERT_THAT(*kept, testing::SizeIs(2));
  EXPECT_EQ((*kept)[1].sandbox_id, "sb-1");
  EXPECT_EQ((*kept)[1].policy, "Leave");
  EXPECT_EQ((*kept)[1].time, release("").time);
  EXPECT_THAT(*store().releases(one + "-b"), testing::IsEmpty());
  ASSERT_TRUE(store().remove_release(one, "sb-0"));
  ASSERT_TRUE(store().remove_release(one, "sb-0"));
  EXPECT_THAT(*store().releases(one), testing::SizeIs(1));
}

TEST_P(StoreContract, KeepsTheWayInOfAnObjectUntilThatIsGone) {
  const std::string uid = begun(attempt_)->metadata.uid;
  const ResourceStore::WayIn first{"sb-1", "0.6.13", "CANARY-1", {}};
  const ResourceStore::WayIn second{"sb-1", "0.6.13", {}, "CANARY-2"};
  EXPECT_EQ(*store().kept_way_in(uid), std::nullopt);
  ASSERT_TRUE(store().keep_way_in(key(), uid, first));
  const auto kept = store().keep_way_in(key(), uid, second);
  ASSERT_TRUE(kept) << kept.error().message;
  world_->reopen();
  ASSERT_TRUE(becomes([&] { return store().find_sandbox(key()) != nullptr; }));
  EXPECT_EQ(*store().kept_way_in(uid), second);
  EXPECT_EQ(code_of(store().keep_way_in(key(), "another", first)), base::ErrorCode::kConflict);
  EXPECT_EQ(code_of(store().keep_way_in(key("none"), uid, first)), base::ErrorCode::kNotFound);
  world_->remove_sandbox("a");
  ASSERT_TRUE(becomes([&] { return store().find_sandbox(key())->deleting(); }));
  const auto leaving = store().find_sandbox(key());
  ASSERT_TRUE(store().update_metadata(key(), exactly(*leaving), leaving->metadata.annotations, {}));
  ASSERT_TRUE(becomes([&] { return !store().find_sandbox(key()); }));
  EXPECT_EQ(*store().kept_way_in(uid), std::nullopt);
}

TEST_P(StoreContract, HasOneFleetIdAndOneFleetKey) {
  const std::string id = store().fleet_id();
  const auto fleet_key = store().fleet_key();
  ASSERT_TRUE(fleet_key) << fleet_key.error().message;
  EXPECT_THAT(*fleet_key, testing::SizeIs(32));
  EXPECT_NE(id, "");
  world_->reopen();
  EXPECT_EQ(store().fleet_id(), id);
  EXPECT_EQ(*store().fleet_key(), *fleet_key);
}

}  // namespace api
