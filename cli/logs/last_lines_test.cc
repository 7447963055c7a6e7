#include "cli/logs/last_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace cli {
namespace {

// Numbered lines of nine bytes, written to its end while others read, of which the last are kept.
class Written {
 public:
  explicit Written(std::int64_t kept) : kept_(kept) {}

  void grow(std::int64_t lines) {
    for (std::int64_t i = 0; i < lines; ++i) {
      const std::string number = std::to_string(10'000'000 + count_++);
      text_ += number + "\n";
    }
  }
  std::int64_t bytes() const { return static_cast<std::int64_t>(text_.size()); }
  const std::string& text() const { return text_; }
  int readings() const { return readings_; }

  // Which lets it grow by so many lines each time.
  ReadBlock reading(std::int64_t growth = 0) {
    return [this, growth](std::int64_t from, std::int64_t bytes) -> base::Result<Block> {
      ++readings_;
      grow(growth);
      const std::int64_t begin = std::max(from, this->bytes() - kept_);
      return Block{begin,
                   text_.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(bytes))};
    };
  }

 private:
  std::int64_t kept_, count_ = 0;
  std::string text_;
  int readings_ = 0;
};

constexpr std::int64_t kLine = 9, kKept = 256 << 10;

TEST(LastLinesOfKept, AreTheLastOfWhatIsThereHoweverFastItIsWritten) {
  for (const std::int64_t growth : {0, 100, 10'000, 100'000}) {
    Written written(kKept);
    written.grow(50'000);
    const auto found = last_lines_of_kept(written.reading(growth), written.bytes(), 5);
    ASSERT_TRUE(found);
    EXPECT_EQ(written.readings(), 1);
    EXPECT_EQ(found->block.end(), written.bytes());
    EXPECT_EQ(found->block.bytes, written.text().substr(written.text().size() - 5 * kLine));
    EXPECT_TRUE(found->all);
  }
}

TEST(LastLinesOfKept, AreLookedForInWhatIsBeforeAsLongAsThatIsKept) {
  for (const std::int64_t growth : {0, 100, 1'000, 10'000, 30'000}) {
    Written written(kKept);
    written.grow(50'000);
    const std::int64_t wanted = 20'000;
    const auto found = last_lines_of_kept(written.reading(growth), written.bytes(), wanted);
    ASSERT_TRUE(found);
    const auto& [block, all] = *found;
    const auto lines = std::count(block.bytes.begin(), block.bytes.end(), '\n');
    EXPECT_EQ(block.bytes,
              written.text().substr(static_cast<std::size_t>(block.from), block.bytes.size()));
    EXPECT_EQ(all, lines == wanted) << lines;
    EXPECT_EQ(all, growth != 10'000) << "then the rest is gone before it is looked for";
    EXPECT_GE(block.end(), 50'000 * kLine) << "what there was is in it, or gone";
    EXPECT_LE(written.readings(), 4);
  }
}

TEST(LastLinesOfKept, AreAllWhereThereAreNoMore) {
  Written written(kKept);
  written.grow(3);
  const auto found = last_lines_of_kept(written.reading(), written.bytes(), 10);
  EXPECT_EQ(found->block, (Block{0, written.text()}));
  EXPECT_TRUE(found->all);
  EXPECT_EQ(last_lines_of_kept(written.reading(), written.bytes(), 0)->block,
            (Block{written.bytes(), ""}));
}

TEST(LastLinesOfKept, FailAsReadingDoes) {
  const auto gone = [](std::int64_t, std::int64_t) -> base::Result<Block> {
    return base::error(base::ErrorCode::kNotFound, "no such handle");
  };
  EXPECT_EQ(last_lines_of_kept(gone, 1, 1).error().message, "no such handle");
  EXPECT_EQ(last_lines_in_file(gone, 1, 1).error().message, "no such handle");
}

TEST(LastLinesInFile, AreWhereTheyBegin) {
  Written written(1 << 30);
  written.grow(50'000);
  EXPECT_EQ(*last_lines_in_file(written.reading(), written.bytes(), 3),
            written.bytes() - 3 * kLine);
  EXPECT_EQ(*last_lines_in_file(written.reading(), written.bytes(), 40'000),
            written.bytes() - 40'000 * kLine);
  EXPECT_EQ(*last_lines_in_file(written.reading(), written.bytes(), 90'000), 0);
}

TEST(LastLinesInFile, AreNotLookedForForEverInOneThatIsTooShort) {
  Written written(1 << 30);
  written.grow(10);
  const auto found = last_lines_in_file(written.reading(), written.bytes() + 7, 20);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "it ends at 90, and is to have 97 bytes");
}

}  // namespace
}  // namespace cli
