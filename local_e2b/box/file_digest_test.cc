#include "local_e2b/box/file_digest.h"

#include <gtest/gtest.h>

#include <fstream>

#include "libs/base/crypto.h"
#include "libs/base/testing/temporary_folder.h"

namespace local_e2b {
namespace {

namespace fs = std::filesystem;

TEST(FileDigest, IsOfWhatTheFileHoldsNow) {
  const base::TemporaryFolder folder;
  const fs::path file = folder / "file";
  FileDigest digest;
  EXPECT_FALSE(digest.of(file));
  for (const std::string& content :
       {std::string("one"), std::string("two"), std::string(1'000'000, 'x')}) {
    // Of the same age and, the second time, the same size.
    std::ofstream(file, std::ios::trunc) << content;
    fs::last_write_time(file, fs::file_time_type{});
    for (int time = 0; time < 2; ++time)
      EXPECT_EQ(*digest.of(file), base::to_hex(base::sha256(content)));
  }
  fs::rename(file, folder / "moved");
  EXPECT_FALSE(digest.of(file));
}

}  // namespace
}  // namespace local_e2b
