#include "executor/subprocess/tail.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace executor {
namespace {

std::string all_of(const Tail& tail) { return tail.copy(tail.begin(), tail.size()); }

// covers: O2
TEST(Tail, KeepsExactlyTheLastBytes) {
  for (const std::size_t bytes_max : {0u, 1u, 5u, 16u, 40u}) {
    for (const std::size_t piece : {1u, 3u, 5u, 16u, 50u}) {
      Tail tail(bytes_max);
      std::string whole;
      for (char c = 'a'; whole.size() < 100; ++c) {
        const std::string bytes(piece, c);
        whole += bytes;
        tail.append(bytes);
        const std::size_t kept = std::min(whole.size(), bytes_max);
        ASSERT_EQ(all_of(tail), whole.substr(whole.size() - kept)) << bytes_max << " by " << piece;
        ASSERT_EQ(tail.end(), static_cast<std::int64_t>(whole.size()));
        ASSERT_EQ(tail.begin(), static_cast<std::int64_t>(whole.size() - kept));
      }
    }
  }
}

// covers: O2
TEST(Tail, ThatIsJustFullHasLostNothing) {
  Tail tail(4);
  tail.append("abcd");
  EXPECT_EQ(tail.begin(), 0);
  EXPECT_EQ(tail.room(), 0u);
  tail.append("");
  EXPECT_EQ(tail.begin(), 0);
  tail.append("e");
  EXPECT_EQ(tail.begin(), 1);
}

// covers: O1
TEST(Tail, CopiesFromAnyOffsetWithoutConsuming) {
  Tail tail(10);
  tail.append("0123456789abcde");
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(tail.copy(5, 100), "56789abcde");
    EXPECT_EQ(tail.copy(8, 4), "89ab");
    EXPECT_EQ(tail.copy(15, 4), "");
  }
}

TEST(Tail, GivesRoomForWhatIsForgotten) {
  Tail tail(8);
  std::string whole;
  std::int64_t forgotten = 0;
  for (int round = 0; round < 20; ++round) {
    const std::string bytes(tail.room(), static_cast<char>('a' + round));
    whole += bytes;
    tail.append(bytes);
    EXPECT_EQ(tail.begin(), forgotten) << "nothing goes by itself";
    forgotten += 1 + round % 7;
    tail.forget_before(forgotten);
    EXPECT_EQ(all_of(tail), whole.substr(static_cast<std::size_t>(forgotten)));
  }
  tail.forget_before(1'000);
  EXPECT_EQ(tail.size(), 0u);
  tail.forget_before(0);
  EXPECT_EQ(tail.begin(), tail.end()) << "what is forgotten does not come back";
}

}  // namespace
}  // namespace executor
