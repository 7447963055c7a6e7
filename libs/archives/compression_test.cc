#include "libs/archives/compression.h"

#include <gtest/gtest.h>

#include "libs/archives/testing/tree.h"
#include "libs/base/crypto.h"

namespace archives {
namespace {

struct Read {
  std::string bytes, trailer;
  std::optional<Failure> failure = {};
};

Read read_all(const std::string& stream, std::size_t piece = 1000) {
  std::size_t at = 0;
  Decompressor decompressor([&]() -> Result<std::string> {
    std::string bytes = stream.substr(std::min(at, stream.size()), piece);
    at += bytes.size();
    return bytes;
  });
  Read read;
  for (;;) {
    const auto bytes = decompressor.read();
    if (!bytes) {
      read.failure = bytes.error();
      return read;
    }
    if (bytes->empty()) {
      read.trailer = decompressor.trailer();
      return read;
    }
    read.bytes += *bytes;
  }
}

std::string text() {
  std::string made;
  for (int i = 0; i < 60'000; ++i) made += std::to_string(i * 7 % 1000);
  return made;
}

TEST(Compression, GivesBackWhatItTook) {
  const std::string frame = testing::compressed(text());
  EXPECT_LT(frame.size(), text().size());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, frame.size()})
    EXPECT_EQ(read_all(frame, piece).bytes, text()) << piece;
  EXPECT_EQ(read_all(frame + frame).bytes, text() + text()) << "frames follow each other";
}

TEST(Compression, TellsWhatStandsBehind) {
  const std::string frame = testing::compressed(text());
  for (const std::size_t piece : {std::size_t{1}, std::size_t{5}, std::size_t{100'000}}) {
    const Read read = read_all(frame + trailer_frame("{\"a\":1}"), piece);
    EXPECT_EQ(read.bytes, text());
    EXPECT_EQ(read.trailer, "{\"a\":1}");
  }
  EXPECT_EQ(read_all(frame).trailer, "");
  EXPECT_EQ(base::to_hex(trailer_frame("{}")), "5a2a4d18020000007b7d");
}

// covers: X4
TEST(Compression, IsNotWholeWithoutItsEnd) {
  const std::string whole = testing::compressed("some text") + trailer_frame("told");
  const std::size_t frame = testing::compressed("some text").size();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    if (bytes == frame) continue;  // An archive of which nothing is told.
    const Read read = read_all(whole.substr(0, bytes));
    ASSERT_TRUE(read.failure) << bytes;
    EXPECT_EQ(read.failure->fault, Fault::kUnfit);
  }
}

TEST(Compression, RefusesWhatIsDamaged) {
  std::string frame = testing::compressed(text());
  frame[frame.size() / 2] = static_cast<char>(frame[frame.size() / 2] ^ 4);
  EXPECT_EQ(read_all(frame).failure->fault, Fault::kUnfit);
  EXPECT_EQ(read_all("\x1f\x8b is gzip").failure->fault, Fault::kUnfit);
}

TEST(Compression, RefusesAWindowThatTakesTooMuchMemory) {
  // A frame (RFC 8878, 3.1.1.1) whose window is 128 MiB: descriptor 0, window exponent 17.
  const std::string frame{'\x28', '\xb5', '\x2f', '\xfd', '\0', '\x88', '\x01', '\0', '\0'};
  EXPECT_NE(read_all(frame).failure->message.find("memory"), std::string::npos)
      << read_all(frame).failure->message;
  std::string small = frame;
  small[5] = '\x68';  // 8 MiB.
  EXPECT_FALSE(read_all(small).failure);
}

TEST(Compression, RefusesATrailerThatIsTooLong) {
  std::string stream = testing::compressed("text") + trailer_frame("");
  stream[stream.size() - 2] = 1;  // 64 KiB
  EXPECT_FALSE(read_all(stream + std::string(kTrailerBytesMax, 'x')).failure);
  stream[stream.size() - 4] = 1;  // And one more.
  EXPECT_EQ(read_all(stream + std::string(kTrailerBytesMax + 1, 'x')).failure->fault,
            Fault::kUnfit);
}

}  // namespace
}  // namespace archives
