#include "executor/search/records.h"

#include <gmock/gmock.h>

namespace executor {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::string> taken_apart(const std::string& bytes, std::size_t piece) {
  Records records('\n');
  std::vector<std::string> all;
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    for (Record& record : records.add(std::string_view(bytes).substr(at, piece)))
      all.push_back(std::move(record.bytes));
  return all;
}

TEST(Records, AreTakenApartHoweverTheyCome) {
  for (std::size_t piece = 1; piece < 9; ++piece)
    EXPECT_THAT(taken_apart("one\n\nthree\nno end", piece), ElementsAre("one", "", "three"));
}

TEST(Records, ThatAreTooLongKeepTheirEnds) {
  Records records('\n');
  const std::string beginning(100, 'a'), end(100, 'z');
  EXPECT_THAT(records.add(beginning + std::string(Records::kBytesMax - 100, 'x')), IsEmpty());
  for (int i = 0; i < 100; ++i)
    EXPECT_THAT(records.add(std::string(Records::kTailBytes, 'y')), IsEmpty());
  const auto cut = records.add(end + "\nnext\n");
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_TRUE(cut[0].cut);
  EXPECT_EQ(cut[0].head, beginning.substr(0, Records::kHeadBytes));
  EXPECT_LE(cut[0].bytes.size(), 2 * Records::kTailBytes);
  EXPECT_TRUE(cut[0].bytes.ends_with(end));
  EXPECT_FALSE(cut[1].cut);
  EXPECT_EQ(cut[1].bytes, "next");
}

TEST(Records, AsLongAsTheyMayBeAreWhole) {
  Records records('\n');
  const auto whole = records.add(std::string(Records::kBytesMax, 'x') + "\n");
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_FALSE(whole[0].cut);
}

constexpr char kBegin[] = R"({"type":"begin","data":{"path":{"text":"./a/b"}}})";

TEST(GrepRecords, BecomeLines) {
  GrepRecords records(100);
  EXPECT_FALSE(records.read({kBegin}));
  const auto match = records.read(
      {R"({"type":"match","data":{"path":{"text":"./a/b"},"lines":{"text":"two words\r\n"},)"
       R"("line_number":7,"absolute_offset":40,"submatches":[{"match":{"text":"two"},"start":0,"end":3},)"
       R"({"match":{"text":"s\r\n"},"start":8,"end":11}]}})"});
  ASSERT_TRUE(match);
  EXPECT_EQ(
      *match,
      (wire::SearchLine{
          .path = "a/b", .line = 7, .offset = 40, .text = "two words", .spans = {{0, 3}, {8, 9}}}));
  const auto context =
      records.read({R"({"type":"context","data":{"path":{"text":"./a/b"},"lines":{"bytes":"/wo="},)"
                    R"("line_number":8,"absolute_offset":51,"submatches":[]}})"});
  EXPECT_EQ(
      *context,
      (wire::SearchLine{.path = "a/b", .line = 8, .offset = 51, .text = "\xff", .context = true}));
  for (const char* other : {R"({"type":"end","data":{"path":{"text":"./a/b"}}})",
                            R"({"type":"summary","data":{}})", R"({"type":"match"})", "no JSON"})
    EXPECT_FALSE(records.read({other})) << other;
}

TEST(GrepRecords, HaveNamesOfAnyBytes) {
  GrepRecords records(100);
  records.read({R"({"type":"begin","data":{"path":{"bytes":"Li9h/w=="}}})"});
  const auto match = records.read(
      {R"({"type":"match","data":{"lines":{"text":"x"},"line_number":1,"submatches":[]}})"});
  EXPECT_EQ(match->path, "a\xff");
}

TEST(GrepRecords, CutLongLinesBetweenCharacters) {
  GrepRecords records(4);
  records.read({kBegin});
  const auto match =
      records.read({R"({"type":"match","data":{"lines":{"text":"abc\u00e9def\n"},"line_number":1,)"
                    R"("absolute_offset":0,"submatches":[{"match":{"text":"b"},"start":1,"end":2},)"
                    R"({"match":{"text":"e"},"start":6,"end":7}]}})"});
  EXPECT_TRUE(match->cut);
  EXPECT_EQ(match->text, "abc");
  EXPECT_THAT(match->spans, ElementsAre(Pair(1, 2)));
}

TEST(GrepRecords, ThatAreTooLongHaveANumberAndNoText) {
  Records apart('\n');
  GrepRecords records(2000);
  records.read({kBegin});
  const auto cut =
      apart.add(R"({"type":"match","data":{"path":{"text":"./a/b"},"lines":{"text":")" +
                std::string(3 << 20, 'x') + R"(\"},\"line_number\":1"},)" +
                R"("line_number":42,"absolute_offset":0,"submatches":[]}})" + "\n");
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(*records.read(cut[0]),
            (wire::SearchLine{.path = "a/b", .line = 42, .text = "", .cut = true}));
}

}  // namespace
}  // namespace executor
