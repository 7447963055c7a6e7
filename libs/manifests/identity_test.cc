#include "libs/manifests/identity.h"

#include <gmock/gmock.h>

#include <fstream>

#include "libs/base/testing/temporary_folder.h"

namespace manifests {
namespace {

namespace fs = std::filesystem;
using base::Done;
using base::ErrorCode;
using base::Result;

Id id_of(const std::string& name) { return {Kind::kSandbox, {"default", name}}; }
std::map<Id, Birth> birth_of(const std::string& name) { return {{id_of(name), {"uid-" + name}}}; }

class IdentityFolderTest : public ::testing::Test {
 protected:
  IdentityFolder open() {
    auto opened = IdentityFolder::open(folder_.path(), folder_.path() / "fallback", disk_);
    EXPECT_TRUE(opened) << opened.error().message;
    return *std::move(opened);
  }
  void refuse(Disk::Step step, const std::string& torn = "") {
    gate_ = [=](const fs::path& path, Disk::Step asked) -> Result<Done> {
      if (asked != step || path.filename() != "uids.log") return Done{};
      std::ofstream(path, std::ios::app) << torn;
      return base::error(ErrorCode::kUnavailable, "no space left on device");
    };
  }

  const base::TemporaryFolder folder_;
  Disk::Gate gate_;
  const Disk disk_{[this](const fs::path& path, Disk::Step step) -> Result<Done> {
    return gate_ ? gate_(path, step) : Done{};
  }};
};

TEST_F(IdentityFolderTest, GluesNoUidToALineThatADiskTookInPart) {
  IdentityFolder identity = open();
  ASSERT_TRUE(identity.add(birth_of("first")));
  refuse(Disk::Step::kAppend, R"({"kind":"Sandb)");
  EXPECT_FALSE(identity.add(birth_of("refused")));
  gate_ = {};
  ASSERT_TRUE(identity.add(birth_of("next")));
  ASSERT_TRUE(identity.sync());
  const auto births = open().births();
  EXPECT_TRUE(births.contains(id_of("first")));
  EXPECT_TRUE(births.contains(id_of("next")));
}

TEST_F(IdentityFolderTest, WritesWhatItCouldNotWriteBefore) {
  for (const auto step : {Disk::Step::kChange, Disk::Step::kAppend}) {
    IdentityFolder identity = open();
    if (step == Disk::Step::kAppend) ASSERT_TRUE(identity.add(birth_of("first")));
    refuse(step);
    EXPECT_FALSE(identity.add(birth_of("again")));
    gate_ = {};
    ASSERT_TRUE(identity.add(birth_of("again")));
    ASSERT_TRUE(identity.sync());
    EXPECT_TRUE(open().births().contains(id_of("again")));
    ASSERT_TRUE(identity.forget(id_of("again")));
  }
}

TEST_F(IdentityFolderTest, ReplacesAListThatCouldNotBeReplacedBefore) {
  IdentityFolder identity = open();
  refuse(Disk::Step::kChange);
  EXPECT_FALSE(identity.replace(birth_of("new")));
  gate_ = {};
  EXPECT_TRUE(identity.replace(birth_of("new")));
  EXPECT_EQ(open().births(), birth_of("new"));
}

}  // namespace
}  // namespace manifests
