#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <fstream>

#include "libs/archives/testing/tree.h"
#include "libs/base/testing/temporary_folder.h"

#if __has_feature(address_sanitizer)
#include <sanitizer/allocator_interface.h>
#endif

namespace archives {
namespace {

constexpr std::uint64_t kFileBytes = 64u << 20;

std::uint64_t heap_bytes() {
#if __has_feature(address_sanitizer)
  return __sanitizer_get_current_allocated_bytes();
#else
  return ::mallinfo2().uordblks;
#endif
}

// The most that the heap held more than at first.
class HighWater {
 public:
  void look() { most_ = std::max(most_, heap_bytes()); }
  std::uint64_t bytes() const { return most_ - std::min(most_, first_); }

 private:
  std::uint64_t first_ = heap_bytes(), most_ = 0;
};

TEST(Memory, DoesNotGrowWithTheArchive) {
  const base::TemporaryFolder folder(std::filesystem::temp_directory_path());
  for (const char* name : {"from", "to", "aside"}) std::filesystem::create_directory(folder / name);
  {
    std::ofstream file(folder / "from/noise", std::ios::binary);
    unsigned state = 1;
    std::string piece(1 << 20, '\0');
    for (std::uint64_t bytes = 0; bytes < kFileBytes; bytes += piece.size()) {
      for (char& byte : piece)
        byte = static_cast<char>((state = state * 1'103'515'245 + 12'345) >> 16);
      file << piece;
    }
  }
  const auto archive = folder / "archive";
  HighWater packing;
  {
    std::ofstream out(archive, std::ios::binary);
    const auto report = pack(testing::open_folder(folder / "from"), {},
                             [&](std::string_view bytes) -> Result<base::Done> {
                               packing.look();
                               out << bytes;
                               return base::Done{};
                             },
                             {});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->bytes, kFileBytes);
  }
  EXPECT_LT(packing.bytes(), 12u << 20);

  HighWater unpacking;
  std::ifstream in(archive, std::ios::binary);
  Report report;
  const auto unpacked = unpack(
      [&]() -> Result<std::string> {
        unpacking.look();
        std::string bytes(64u << 10, '\0');
        in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        bytes.resize(static_cast<std::size_t>(in.gcount()));
        return bytes;
      },
      testing::open_folder(folder / "to"), testing::open_folder(folder / "aside"), {}, report, {});
  ASSERT_TRUE(unpacked) << unpacked.error().message;
  EXPECT_EQ(report.bytes, kFileBytes);
  EXPECT_LT(unpacking.bytes(), 12u << 20);
}

}  // namespace
}  // namespace archives
