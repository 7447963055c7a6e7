#include "executor/files/gzip.h"

#include <gtest/gtest.h>

namespace executor {
namespace {

std::string gzip(std::string_view text) {
  Gzip gzip;
  std::string out = gzip.add(text);
  return out + gzip.finish();
}

base::Result<std::string> gunzip(std::string_view bytes, std::size_t step, bool* finished) {
  Gunzip gunzip;
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    gunzip.add(bytes.substr(at, step));
    for (;;) {
      TRY(const std::string piece, gunzip.next());
      if (piece.empty()) break;
      EXPECT_LE(piece.size(), Gunzip::kPieceBytesMax);
      out += piece;
    }
  }
  *finished = gunzip.finished();
  return out;
}

TEST(Gzip, ComesBackWholeInPartsOfAnySize) {
  std::string text(3u << 20, 'a');  // Compresses a thousandfold: many pieces from one part.
  text += "the end";
  for (const std::size_t step : {1u, 7u, 4096u, 1u << 20}) {
    bool finished = false;
    const auto back = gunzip(gzip(text), step, &finished);
    ASSERT_TRUE(back.ok());
    EXPECT_TRUE(*back == text) << step;
    EXPECT_TRUE(finished) << step;
  }
}

TEST(Gzip, ReadsSeveralMembers) {
  bool finished = false;
  const auto back = gunzip(gzip("one ") + gzip("two"), 5, &finished);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, "one two");
  EXPECT_TRUE(finished);
}

TEST(Gzip, TellsGarbageAndCutBodies) {
  bool finished = true;
  EXPECT_EQ(gunzip("not gzip at all", 100, &finished).error().code, base::ErrorCode::kInvalid);
  const std::string whole = gzip("hello, hello, hello");
  EXPECT_TRUE(gunzip(whole.substr(0, whole.size() - 4), 100, &finished).ok());
  EXPECT_FALSE(finished);
}

}  // namespace
}  // namespace executor
