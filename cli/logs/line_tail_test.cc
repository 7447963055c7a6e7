#include "cli/logs/line_tail.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace cli {
namespace {

std::string tail(const std::string& text, std::int64_t lines, std::size_t block) {
  LineTail tail(static_cast<std::int64_t>(text.size()), lines);
  while (!tail.found()) {
    const auto end = static_cast<std::size_t>(tail.at());
    const std::size_t count = std::min(block, end);
    tail.look(std::string_view(text).substr(end - count, count));
  }
  return text.substr(static_cast<std::size_t>(*tail.found()));
}

TEST(LineTail, IsTheLastLinesWhateverTheBlocks) {
  const struct {
    std::string text;
    std::int64_t lines;
    std::string tail;
  } cases[] = {
      {"a\nb\nc\n", 1, "c\n"},
      {"a\nb\nc\n", 2, "b\nc\n"},
      {"a\nb\nc\n", 3, "a\nb\nc\n"},
      {"a\nb\nc\n", 9, "a\nb\nc\n"},
      {"a\nb\nc", 1, "c"},
      {"a\nb\nc", 2, "b\nc"},
      {"a\n\n\n", 2, "\n\n"},
      {"\n", 1, "\n"},
      {"one", 1, "one"},
      {"a\nb\n", 0, ""},
      {"", 3, ""},
  };
  for (const auto& test : cases)
    for (const std::size_t block : {1, 2, 3, 100})
      EXPECT_EQ(tail(test.text, test.lines, block), test.tail)
          << testing::PrintToString(test.text) << " " << test.lines << " by " << block;
}

}  // namespace
}  // namespace cli
