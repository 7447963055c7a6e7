#include "cli/resources/verbs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "cli/resources/folder_backend.h"
#include "cli/testing/run_line.h"
#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/manifests/file_store.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::string_view kDemo =
    "# The one that we show.\n"
    "apiVersion: sandfleet.dev/v1alpha1\n"
    "kind: Sandbox\n"
    "metadata: {name: demo}\n"
    "spec:\n"
    "  template: {id: base}\n"
    "  desiredState: Running   # or Paused\n";
constexpr std::string_view kTwo =
    "apiVersion: sandfleet.dev/v1alpha1\n"
    "kind: Sandbox\n"
    "metadata: {name: first}\n"
    "spec:\n"
    "  template: {id: base}\n"
    "---\n"
    "apiVersion: sandfleet.dev/v1alpha1\n"
    "kind: Sandbox\n"
    "metadata: {name: second, namespace: team}\n"
    "spec:\n"
    "  template: {id: base}\n";

// A manifest folder and a state folder with the real store over them, and a person at a terminal.
// While the person waits, the store scans and `controller` plays the reconciler.
class Verbs : public testing::Test {
 protected:
  Verbs() {
    fs::create_directories(manifests_);
    put("demo.yaml", kDemo);
    auto opened = manifests::FileStore::open({.manifests = manifests_, .state = state_}, clock_);
    EXPECT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
    scan();
  }

  void put(const std::string& name, std::string_view text) {
    ASSERT_TRUE(base::write_file_atomically(manifests_ / name, text, 0644));
  }
  std::string text_of(const std::string& name) { return *base::read_file(manifests_ / name); }
  void scan() {
    const auto scanned = store_->scan_once();
    ASSERT_TRUE(scanned) << scanned.error().message;
  }

  // One line as a person types it, the state folder apart.
  int type(const std::vector<std::string>& line, const std::string& piped = "") {
    out_.str("");
    err_.str("");
    std::istringstream in(piped);
    FolderBackend backend(state_, [this](base::Milliseconds time) {
      clock_.advance(time);
      if (meddler) meddler();
      scan();
      if (controller) controller();
      return --looks_left_ > 0;
    });
    const Terminal terminal{out_, err_, in, clock_};
    return run_line(line, backend, terminal);
  }

  // What the reconciler would report.
  void report(const api::Key& key, const std::string& type, const std::string& reason) {
    const auto sandbox = store_->find_sandbox(key);
    if (!sandbox) return;
    auto status = sandbox->status;
    status.observed_generation = sandbox->metadata.generation;
    status.state = reason;
    status.conditions.clear();
    api::set_condition(status.conditions,
                       {type, "True", reason, "", sandbox->metadata.generation, clock_.wall()});
    const auto written = store_->update_status(key, {sandbox->metadata.uid}, status,
                                               api::ResourceStore::Durability::kNow);
    ASSERT_TRUE(written) << written.error().message;
  }

  void report_at_the_next_look(const api::Key& key, const char* type, const char* reason) {
    controller = [=, this, reported = false]() mutable {
      if (!std::exchange(reported, true)) report(key, type, reason);
    };
  }

  base::FakeClock clock_;
  base::TemporaryFolder folder_;
  fs::path manifests_ = folder_ / "manifests", state_ = folder_ / "state";
  std::unique_ptr<manifests::FileStore> store_;
  std::ostringstream out_, err_;
  int looks_left_ = 1000;
  std::function<void()> controller;
  std::function<void()> meddler;  // Comes before the store takes what was asked.
  const api::Key demo_{"default", "demo"};
};

TEST_F(Verbs, GetWarnsOfManifestsThatAreBroken) {
  put("broken.yaml", "kind: [");
  scan();
  EXPECT_EQ(type({"get"}), kDone);
  EXPECT_THAT(err_.str(), StartsWith("warning: "));
  EXPECT_THAT(err_.str(), HasSubstr("broken.yaml:1"));
  EXPECT_THAT(out_.str(), HasSubstr("\ndemo "));
}

TEST_F(Verbs, WatchSaysWhatIsGone) {
  looks_left_ = 40;
  fs::remove(manifests_ / "demo.yaml");
  put("other.yaml", kTwo);
  EXPECT_EQ(type({"get", "-w"}), kDone);
  EXPECT_THAT(err_.str(), HasSubstr("default/demo is gone\n"));
}

TEST_F(Verbs, DescribeShowsTheOrigin) {
  EXPECT_EQ(type({"describe", "demo"}), kDone);
  EXPECT_THAT(out_.str(), HasSubstr("Declared in:      " + (manifests_ / "demo.yaml").string()));
}

TEST_F(Verbs, PeopleAreToldThatNoControllerIsRunning) {
  const std::vector<std::vector<std::string>> lines = {
      {"get"}, {"get", "-o", "wide"}, {"get", "sfp"}, {"describe", "demo"}};
  for (const auto& line : lines) {
    EXPECT_EQ(type(line), kDone);
    EXPECT_THAT(err_.str(), Not(HasSubstr("hint:"))) << "one has the lock";
  }
  EXPECT_EQ(type({"get"}), kDone);
  const std::string table = out_.str();
  store_.reset();
  for (const auto& line : lines) {
    EXPECT_EQ(type(line), kDone);
    EXPECT_THAT(err_.str(), HasSubstr("hint: no controller is running on " + state_.string()));
  }
  EXPECT_EQ(type({"get"}), kDone);
  EXPECT_EQ(out_.str(), table);
  EXPECT_EQ(type({"get", "nobody"}), kNotFound);
  EXPECT_THAT(err_.str(), HasSubstr("hint:"));
  for (const char* format : {"json", "yaml"}) {
    EXPECT_EQ(type({"get", "-o", format}), kDone);
    EXPECT_EQ(err_.str(), "");
  }
}

TEST_F(Verbs, PauseEditsOneWordAndKeepsTheComments) {
  EXPECT_EQ(type({"pause", "demo"}), kDone);
  EXPECT_EQ(out_.str(),
            "sandbox/demo desiredState Paused in " + (manifests_ / "demo.yaml").string() + "\n");
  std::string expected(kDemo);
  expected.replace(expected.find("Running"), 7, "Paused");
  EXPECT_EQ(text_of("demo.yaml"), expected);
  EXPECT_EQ(type({"resume", "demo"}), kDone);
  EXPECT_EQ(text_of("demo.yaml"), kDemo);
}

TEST_F(Verbs, PauseFindsTheRightDocument) {
  put("two.yaml", kTwo);
  scan();
  std::string expected(kTwo);
  expected.insert(expected.rfind("  template"), "  desiredState: Paused\n");
  EXPECT_EQ(type({"pause", "second", "-n", "team"}), kDone);
  EXPECT_EQ(text_of("two.yaml"), expected);
}

TEST_F(Verbs, PauseRefusesWhatCannotBeEditedInPlace) {
  put("flow.yaml",
      "{apiVersion: sandfleet.dev/v1alpha1, kind: Sandbox, metadata: {name: flow}, "
      "spec: {template: {id: base}}}\n");
  scan();
  const auto before = text_of("flow.yaml");
  EXPECT_EQ(type({"pause", "flow"}), kRefused);
  EXPECT_THAT(err_.str(), HasSubstr("edit the file by hand"));
  EXPECT_EQ(text_of("flow.yaml"), before);
}

TEST_F(Verbs, PauseWaitsUntilThisWishWasSeen) {
  controller = [&] {
    if (store_->find_sandbox(demo_)->spec.desired_state == api::DesiredState::kPaused) {
      report(demo_, "Paused", "Paused");
    }
  };
  EXPECT_EQ(type({"pause", "demo", "--wait"}), kDone) << err_.str();
  EXPECT_THAT(err_.str(), HasSubstr("waiting for sandbox/demo: the controller has not taken"));
}

TEST_F(Verbs, TerminateAsksForTheEnd) {
  EXPECT_EQ(type({"terminate", "sandbox/demo"}), kDone);
  EXPECT_THAT(text_of("demo.yaml"), HasSubstr("desiredState: Terminated   # or Paused"));
}

TEST_F(Verbs, DeleteKeepsTheManifestAndTheObjectStaysAway) {
  EXPECT_EQ(type({"delete", "demo", "--wait"}), kDone) << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("demo.yaml stays, and is passed over until it changes"));
  EXPECT_EQ(text_of("demo.yaml"), kDemo);
  scan();
  EXPECT_EQ(store_->find_sandbox(demo_), nullptr);
}

TEST_F(Verbs, ApplyingTheSameAgainBringsBackWhatWasDeleted) {
  const auto uid = store_->find_sandbox(demo_)->metadata.uid;
  EXPECT_EQ(type({"delete", "demo", "--wait"}), kDone) << err_.str();
  EXPECT_EQ(type({"apply", "-f", (manifests_ / "demo.yaml").string()}), kDone) << err_.str();
  scan();
  ASSERT_NE(store_->find_sandbox(demo_), nullptr);
  EXPECT_NE(store_->find_sandbox(demo_)->metadata.uid, uid);
}

TEST_F(Verbs, DeleteRemovesTheManifestWhenAsked) {
  EXPECT_EQ(type({"delete", "demo", "--remove-manifest", "--wait"}), kDone) << err_.str();
  EXPECT_FALSE(fs::exists(manifests_ / "demo.yaml"));
  EXPECT_EQ(store_->find_sandbox(demo_), nullptr);
}

TEST_F(Verbs, DeleteRefusesToRemoveAManifestThatHoldsMore) {
  put("two.yaml", kTwo);
  scan();
  EXPECT_EQ(type({"delete", "first", "--remove-manifest"}), kRefused);
  EXPECT_THAT(err_.str(), HasSubstr("declares 2 objects, so it is not removed"));
  EXPECT_EQ(text_of("two.yaml"), kTwo);
  scan();
  EXPECT_FALSE(store_->find_sandbox({"default", "first"})->deleting());
}

TEST_F(Verbs, DeleteSaysWhatTheControllerRefuses) {
  meddler = [&] {
    std::vector<fs::path> requests;
    for (const auto& entry : fs::directory_iterator(state_ / "requests"))
      if (entry.is_regular_file()) requests.push_back(entry.path());
    for (const auto& request : requests)
      ASSERT_TRUE(base::write_file_atomically(request, R"({"kind":"Erase"})", 0600));
  };
  EXPECT_EQ(type({"delete", "demo", "--wait"}), kRefused);
  EXPECT_THAT(err_.str(), HasSubstr("sandbox/demo: the controller refuses: the kind \"Erase\""));
  EXPECT_FALSE(store_->find_sandbox(demo_)->deleting());
  meddler = nullptr;
  EXPECT_EQ(type({"delete", "demo", "--wait"}), kDone) << err_.str();
}

TEST_F(Verbs, ApplyPutsAFileIntoTheFolder) {
  const fs::path file = folder_ / "new.yaml";
  ASSERT_TRUE(base::write_file_atomically(
      file,
      "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata: {name: new}\n"
      "spec: {template: {id: base}}\n",
      0644));
  controller = [&] { report({"default", "new"}, "Ready", "Running"); };
  EXPECT_EQ(type({"apply", "-f", file.string(), "--wait"}), kDone) << err_.str();
  EXPECT_EQ(out_.str(), "sandbox/new applied in " + (manifests_ / "new.yaml").string() + "\n");
}

TEST_F(Verbs, ApplyWaitsForTheNewSpecAlthoughTheOldOneIsReady) {
  report(demo_, "Ready", "Running");
  std::string edited(kDemo);
  edited += "  keepAlive: {timeoutSeconds: 600}\n";
  const fs::path file = folder_ / "demo.yaml";
  ASSERT_TRUE(base::write_file_atomically(file, edited, 0644));
  controller = [&] { report(demo_, "Ready", "Running"); };
  EXPECT_EQ(type({"apply", "-f", file.string(), "--wait"}), kDone) << err_.str();
  EXPECT_THAT(err_.str(), HasSubstr("the controller has not taken the change yet"));
  EXPECT_EQ(store_->find_sandbox(demo_)->spec.keep_alive.timeout, base::Seconds(600));
}

TEST_F(Verbs, ApplyNamesAPipedManifestByItsObject) {
  EXPECT_EQ(type({"apply", "-f", "-"},
                 "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata: {name: piped}\n"
                 "spec: {template: {id: base}}\n"),
            kDone)
      << err_.str();
  EXPECT_TRUE(fs::exists(manifests_ / "piped.yaml"));
}

TEST_F(Verbs, AFolderThatIsNoStateFolderIsNamed) {
  state_ = folder_.path();
  EXPECT_EQ(type({"get"}), kNotFound);
  EXPECT_THAT(err_.str(), HasSubstr("is no state folder of a controller"));
}

TEST_F(Verbs, FlagsAreRefusedWithUsage) { EXPECT_EQ(type({"get", "-o", "xml"}), kUsage); }

}  // namespace
}  // namespace cli
