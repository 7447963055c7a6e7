#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "libs/base/files.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/manifests/file_store.h"
#include "libs/manifests/requests.h"

// A store on two scratch folders, and what people do to them.
namespace manifests {

namespace fs = std::filesystem;

inline const api::Key kA{"default", "a"};

inline std::string sandbox_yaml(const std::string& name, const std::string& more = "") {
  return "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata:\n  name: " + name +
         "\nspec:\n  template:\n    id: base\n" + more;
}

// Every path in the folder, with what each file holds.
inline std::string files_in(const fs::path& folder) {
  std::string text;
  if (!fs::exists(folder)) return text;
  std::vector<fs::path> paths;
  for (const auto& each : fs::recursive_directory_iterator(folder)) paths.push_back(each.path());
  std::ranges::sort(paths);
  for (const auto& path : paths)
    text += path.string() + "\n" + (fs::is_regular_file(path) ? *base::read_file(path) : "") + "\n";
  return text;
}

class Store : public ::testing::Test {
 protected:
  Store() {
    options_.manifests = folder_.path() / "manifests";
    options_.state = folder_.path() / "state";
    options_.machine_id = "machine-1";
    fs::create_directory(options_.manifests);
  }

  void open() {
    store_.reset();
    auto opened = FileStore::open(options_, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
  }
  std::string refusal() {
    store_.reset();
    const auto opened = FileStore::open(options_, clock_);
    return opened ? "opened" : opened.error().message;
  }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::write_file_atomically(options_.manifests / name, text, 0644));
  }
  void remove(const std::string& name) { fs::remove(options_.manifests / name); }
  void scan() {
    const auto scanned = store_->scan_once();
    ASSERT_TRUE(scanned) << scanned.error().message;
  }
  // Long enough for a removal to be believed.
  void settle() {
    scan();
    clock_.advance(options_.removal_hold);
    scan();
  }
  std::string uid(const std::string& name = "a") {
    const auto found = store_->find_sandbox({"default", name});
    return found ? found->metadata.uid : "";
  }
  void hold(const std::string& name) {
    const auto found = store_->find_sandbox({"default", name});
    ASSERT_TRUE(found);
    ASSERT_TRUE(store_->update_metadata({"default", name}, {found->metadata.uid},
                                        found->metadata.annotations,
                                        {std::string(api::kFinalizer)}));
  }
  void let_go(const std::string& name) {
    const auto found = store_->find_sandbox({"default", name});
    ASSERT_TRUE(found);
    ASSERT_TRUE(store_->update_metadata({"default", name}, {found->metadata.uid},
                                        found->metadata.annotations, {}));
  }
  RequestResult ask(const Request& request) {
    const auto id = write_request(options_.state, request);
    EXPECT_TRUE(id) << id.error().message;
    scan();
    const auto result = request_result(options_.state, *id);
    EXPECT_TRUE(result) << result.error().message;
    EXPECT_TRUE(*result);
    return result && *result ? **result : RequestResult{};
  }
  void write_many(int count) {
    for (int index = 0; index < count; ++index)
      write("s" + std::to_string(index) + ".yaml", sandbox_yaml("s" + std::to_string(index)));
  }

  base::TemporaryFolder folder_;
  FileStoreOptions options_;
  base::FakeClock clock_;
  std::unique_ptr<FileStore> store_;
};

}  // namespace manifests
