#include "libs/api/testing/store_contract.h"

#include "libs/base/files.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/manifests/file_store.h"
#include "libs/manifests/state_reader.h"

namespace manifests {
namespace {

using api::Sandbox;
using api::StoreContract;
using base::Json;

// JSON is YAML, so that people may write it in a manifest.
class FolderWorld final : public api::StoreWorld {
 public:
  FolderWorld() {
    std::filesystem::create_directory(options().manifests);
    reopen();
  }

  api::ResourceStore& store() override { return *store_; }
  void reopen() override {
    store_.reset();
    auto opened = FileStore::open(options(), clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
    told_.listen_to(*store_);
    settle();
  }
  void declare_sandbox(const std::string& name, const Json& spec) override {
    write("sandbox-" + name, {{"apiVersion", api::kGroupVersion},
                              {"kind", "Sandbox"},
                              {"metadata", {{"name", name}}},
                              {"spec", spec}});
  }
  void remove_sandbox(const std::string& name) override {
    std::filesystem::remove(path_of("sandbox-" + name));
  }
  void declare_provider(const Json& spec) override {
    write("provider", {{"apiVersion", api::kGroupVersion},
                       {"kind", "SandboxProvider"},
                       {"metadata", {{"name", provider_name()}}},
                       {"spec", spec}});
  }
  void remove_provider() override { std::filesystem::remove(path_of("provider")); }
  void declare_secret(const std::string& name, const std::string& key,
                      const std::string& value) override {
    write("secret-" + name, {{"apiVersion", "v1"},
                             {"kind", "Secret"},
                             {"metadata", {{"name", name}}},
                             {"stringData", {{key, value}}}});
  }
  std::vector<api::Key> told() override { return told_.all(); }
  std::vector<api::Event> events_of(const Sandbox& sandbox) override {
    std::vector<api::Event> events;
    const auto recorded = StateReader(options().state).events();
    EXPECT_TRUE(recorded) << recorded.error().message;
    for (const auto& each : *recorded)
      if (each.regarding_uid == sandbox.metadata.uid) events.push_back(each.event);
    return events;
  }
  // A removal must hold before it is believed.
  void settle() override {
    ASSERT_TRUE(store_->scan_once());
    clock_.advance(options().removal_hold);
    ASSERT_TRUE(store_->scan_once());
  }

 private:
  FileStoreOptions options() const {
    return {.manifests = folder_.path() / "manifests",
            .state = folder_.path() / "state",
            .machine_id = "machine-1"};
  }
  std::filesystem::path path_of(const std::string& name) const {
    return options().manifests / (name + ".yaml");
  }
  void write(const std::string& name, const Json& document) {
    ASSERT_TRUE(base::write_file_atomically(path_of(name), base::to_text(document), 0644));
  }

  const base::TemporaryFolder folder_;
  base::FakeClock clock_;
  api::Told told_;
  std::unique_ptr<FileStore> store_;
};

INSTANTIATE_TEST_SUITE_P(All, StoreContract,
                         testing::Values(api::StoreKind{
                             "folder", [] { return std::make_unique<FolderWorld>(); }}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace manifests
