#include "executor/search/tools.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "executor/testing/scratch.h"
#include "libs/base/staged.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kContent = "#!/bin/sh\necho found\n";

class Tools : public ::testing::Test {
 protected:
  base::Result<std::string> deliver(std::string_view content) const {
    const auto delivery = place.receive();
    EXPECT_TRUE(delivery);
    CHECK_OK((*delivery)->add(content));
    return (*delivery)->commit();
  }
  std::size_t leftovers() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(folder / "bin"))
      if (entry.path().filename() != "rg") ++count;
    return count;
  }

  Scratch folder;
  const std::string digest = base::to_hex(base::sha256(kContent));
  ToolPlace place{{"rg", digest, kContent.size()}, folder / "bin", {folder / "baked"}};
};

TEST_F(Tools, AreTakenByTheirDigestAlone) {
  EXPECT_FALSE(place.find());
  EXPECT_FALSE(deliver("#!/bin/sh\necho foreign"));
  EXPECT_FALSE(deliver("short"));
  EXPECT_FALSE(deliver(std::string(kContent) + "x")) << "longer than it may be";
  EXPECT_FALSE(place.find());
  EXPECT_EQ(leftovers(), 0u);
  const auto path = deliver(kContent);
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(*path, folder / "bin/rg");
  EXPECT_EQ(place.find(), *path);
  struct stat found{};
  ASSERT_EQ(::stat(path->c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0500u);
  EXPECT_TRUE(deliver(kContent)) << "once more";
  EXPECT_EQ(leftovers(), 0u);
}

// covers: A5
TEST_F(Tools, ThatAnEarlierExecutorLeftHalfWrittenGo) {
  ASSERT_TRUE(deliver(kContent));
  const std::string staged = base::staged_name("rg");
  const std::vector<std::string> others = {base::staged_name("rg.1"),     base::staged_name("g"),
                                           ".rg.0123456789abXX.tmp",      ".rg.0123456789ab.tmp~",
                                           "rg" + base::staged_name("x"), "mine.tmp"};
  folder.write("bin/" + staged, "half");
  for (const std::string& name : others) folder.write("bin/" + name, "another's");
  {
    const ToolPlace another({"fd", digest, kContent.size()}, folder / "bin", {});
  }
  EXPECT_TRUE(fs::exists(folder / ("bin/" + staged)));
  const ToolPlace next({"rg", digest, kContent.size()}, folder / "bin", {});
  EXPECT_FALSE(fs::exists(folder / ("bin/" + staged)));
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(folder / ("bin/" + name))) << name;
  EXPECT_TRUE(place.find());
}

TEST_F(Tools, ThatChangedAreNotFoundAnyMore) {
  ASSERT_TRUE(deliver(kContent));
  ASSERT_TRUE(place.find());
  std::string other(kContent);
  other.back() = ' ';
  fs::remove(folder / "bin/rg");
  folder.write("bin/rg", other);
  fs::permissions(folder / "bin/rg", fs::perms::owner_all);
  EXPECT_FALSE(place.find());
}

TEST_F(Tools, AreFoundWhereAnImageHasThem) {
  fs::create_directory(folder / "baked");
  folder.write("baked/rg", kContent);
  EXPECT_FALSE(place.find()) << "it cannot be executed";
  fs::permissions(folder / "baked/rg", fs::perms::owner_all);
  EXPECT_EQ(place.find(), folder / "baked/rg");
  fs::create_directory(folder / "bin");
  fs::create_symlink(folder / "baked/rg", folder / "bin/rg");
  EXPECT_EQ(place.find(), folder / "baked/rg") << "no link stands for it";
}

}  // namespace
}  // namespace executor
