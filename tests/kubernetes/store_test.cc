#include <cstdlib>

#include "controller/cluster/cluster_store.h"
#include "libs/api/testing/store_contract.h"
#include "libs/base/crypto.h"
#include "libs/net/cpprest/cpprest_transport.h"

// The contract of stores, kept by a real API server that on_a_server.py starts.
namespace controller {
namespace {

using api::Sandbox;
using api::StoreContract;
using base::Json;

constexpr base::Milliseconds kPatience{20'000};

kube::Config config() {
  auto found = kube::find_config({}, kube::surroundings_of_process());
  EXPECT_TRUE(found) << found.error().message;
  return *std::move(found);
}

// A namespace of its own, which is the controller's too.
class ClusterWorld final : public api::StoreWorld {
 public:
  ClusterWorld() {
    EXPECT_TRUE(people_.create(kube::kNamespaces, {{"metadata", {{"name", space_}}}}));
    reopen();
  }

  api::ResourceStore& store() override { return *store_; }
  void reopen() override {
    store_.reset();
    auto fleet_id = fleet_id_of(ours_, space_, "tests");
    ASSERT_TRUE(fleet_id) << fleet_id.error().message;
    store_ = std::make_unique<ClusterStore>(
        ours_, clock_,
        ClusterStoreSettings{
            .own_space = space_, .space = space_, .fleet_id = *fleet_id, .instance = "tests"});
    told_.listen_to(*store_);
    const auto started = store_->start(kPatience, {});
    ASSERT_TRUE(started) << started.error().message;
  }
  std::string space() const override { return space_; }
  std::string provider_name() const override { return space_; }
  void declare_sandbox(const std::string& name, const Json& spec) override {
    apply(kube::kSandboxes, name, {{"spec", spec}});
  }
  void remove_sandbox(const std::string& name) override {
    EXPECT_TRUE(people_.remove(kube::kSandboxes, {space_, name}));
  }
  void declare_provider(const Json& spec) override {
    apply(kube::kSandboxProviders, provider_name(), {{"spec", spec}});
  }
  void remove_provider() override {
    EXPECT_TRUE(people_.remove(kube::kSandboxProviders, {"", provider_name()}));
  }
  void declare_secret(const std::string& name, const std::string& key,
                      const std::string& value) override {
    apply(kube::kSecrets, name, {{"stringData", {{key, value}}}});
  }
  std::vector<api::Key> told() override { return told_.all(); }
  std::vector<api::Event> events_of(const Sandbox& sandbox) override {
    std::vector<api::Event> events;
    const auto page = people_.list(kube::kEvents, {space_}, {});
    EXPECT_TRUE(page) << page.error().message;
    for (const Json& event : page->items) {
      if (event["regarding"]["uid"] != sandbox.metadata.uid) continue;
      const auto text = [&](const char* key) { return base::text_at(event, key).value_or(""); };
      events.push_back({text("type"), text("reason"), text("action"), text("note")});
    }
    return events;
  }

 private:
  void apply(const kube::Resource& resource, const std::string& name, Json object) {
    object["apiVersion"] = kube::api_version_of(resource);
    object["kind"] = resource.kind;
    object["metadata"] = {{"name", name}};
    if (resource.namespaced) object["metadata"]["namespace"] = space_;
    const auto applied = people_.apply(resource, object, true);
    EXPECT_TRUE(applied) << applied.error().message;
  }

  const std::string space_ = "t-" + base::random_hex(6);
  base::SystemClock clock_;
  kube::Connection connection_{config(), clock_, {.transport = [](const auto& options) {
                                 return net::cpprest_transport(options);
                               }}};
  kube::Client people_{connection_, {.field_manager = "people"}};
  kube::Client ours_{connection_};
  api::Told told_;
  std::unique_ptr<ClusterStore> store_;
};

INSTANTIATE_TEST_SUITE_P(All, StoreContract,
                         testing::Values(api::StoreKind{
                             "cluster", [] { return std::make_unique<ClusterWorld>(); }}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace controller
