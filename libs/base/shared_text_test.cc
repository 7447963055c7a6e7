#include "libs/base/shared_text.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace base {
namespace {

TEST(SharedText, IsOnePlaceForEqualTexts) {
  const std::size_t before = SharedText::places();
  const SharedText one("a reason of some length"), other(std::string("a reason of some length"));
  EXPECT_EQ(one, other);
  EXPECT_EQ(&one.str(), &other.str());
  EXPECT_EQ(SharedText::places(), before + 1);
  const SharedText third("another");
  EXPECT_FALSE(one == third);
  EXPECT_EQ(SharedText::places(), before + 2);
}

TEST(SharedText, GoesWithTheLastThatHasIt) {
  const std::size_t before = SharedText::places();
  {
    SharedText one("passing");
    SharedText copy = one;
    SharedText moved = std::move(one);
    one = "something else";
    EXPECT_EQ(copy, "passing");
    EXPECT_EQ(moved, copy);
    copy = SharedText();
    EXPECT_TRUE(copy.empty());
    EXPECT_EQ(moved, "passing");
  }
  EXPECT_EQ(SharedText::places(), before);
}

TEST(SharedText, ReadsAsAString) {
  const SharedText text("Ready");
  EXPECT_TRUE(text == "Ready" && text == std::string("Ready") && text == std::string_view("Ready"));
  EXPECT_TRUE(text != "Readies");
  const std::string& words = text;
  EXPECT_EQ(words, "Ready");
  EXPECT_EQ(text + "=" + SharedText("True"), "Ready=True");
  EXPECT_EQ(SharedText(""), SharedText());
  EXPECT_EQ(SharedText().str(), "");
}

TEST(SharedText, IsMadeAndEndedOnManyThreads) {
  const std::size_t before = SharedText::places();
  {
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int thread = 0; thread < 4; ++thread)
      threads.emplace_back([] {
        for (int round = 0; round < 2'000; ++round) {
          SharedText text("thread " + std::to_string(round % 3));
          SharedText copy = text;
          text = SharedText();
          ASSERT_EQ(copy, "thread " + std::to_string(round % 3));
          copy = SharedText();
        }
      });
  }
  EXPECT_EQ(SharedText::places(), before);
}

}  // namespace
}  // namespace base
