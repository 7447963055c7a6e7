#include "libs/wire/session/window.h"

#include <gtest/gtest.h>

namespace wire {
namespace {

// So many were asked, and answered in that order.
struct Case {
  const char* name;
  int asked;
  std::vector<std::int64_t> answered;
  std::optional<Ack> said;
};
const Case kCases[] = {
    {"nothing was asked", 0, {}, std::nullopt},
    {"nothing is answered", 3, {}, std::nullopt},
    {"in order", 3, {1, 2}, Ack{.through = 2}},
    {"all, in another order", 3, {3, 1, 2}, Ack{.through = 3}},
    {"one is missing", 4, {1, 3, 4}, Ack{.through = 1, .also = {3, 4}}},
    {"the first is missing", 3, {2, 3}, Ack{.also = {2, 3}}},
};

Window after(const Case& one) {
  Window window;
  for (int i = 0; i < one.asked; ++i) window.next_number();
  for (const std::int64_t seq : one.answered) window.answered(seq);
  return window;
}

TEST(Window, SaysWhatIsAnsweredOnceOnEachLink) {
  for (const Case& one : kCases) {
    Window window = after(one);
    EXPECT_EQ(window.next_ack(), std::nullopt) << one.name << ": there is no hurry";
    window.hurry();
    EXPECT_EQ(window.next_ack(), one.said) << one.name;
    window.hurry();
    EXPECT_EQ(window.next_ack(), std::nullopt) << one.name << ": that was said";
    window.begin_link();
    EXPECT_EQ(window.next_ack(), one.said) << one.name << ": it may not have arrived";
  }
}

TEST(Window, SaysWithARequestHowFarAllIsAnswered) {
  Window window = after({"", 4, {1, 2, 4}, {}});
  EXPECT_EQ(window.kept(), 2);
  EXPECT_EQ(window.kept(), std::nullopt);
  window.hurry();
  EXPECT_EQ(window.next_ack(), Ack{.also = {4}});
}

TEST(Window, HasRoomForAsManyAsTheServerKeeps) {
  Window window = after({"", 3, {1, 3}, {}});
  EXPECT_TRUE(window.has_room(4));
  EXPECT_FALSE(window.has_room(3)) << "it has not heard of any reply";
  window.hurry();
  window.next_ack();
  EXPECT_TRUE(window.has_room(2));
  EXPECT_FALSE(window.has_room(1)) << "one is unanswered";
  window.begin_link();
  EXPECT_FALSE(window.has_room(3));
}

TEST(Window, HurriesWhenMuchIsKept) {
  Window window;
  for (std::size_t i = 1; i < kAcknowledgeAfter; ++i) window.answered(window.next_number());
  EXPECT_EQ(window.next_ack(), std::nullopt);
  window.answered(window.next_number());
  EXPECT_EQ(window.next_ack(), Ack{.through = kAcknowledgeAfter});
}

TEST(Window, HearsANoticeOnceAndSaysSo) {
  Window window;
  EXPECT_TRUE(window.hear({.number = 2}));
  EXPECT_FALSE(window.hear({.number = 2}));
  EXPECT_FALSE(window.hear({.number = 1}));
  window.hurry();
  EXPECT_EQ(window.next_ack(), Ack{.notices = 2});
  window.begin_link();
  EXPECT_EQ(window.next_ack(), Ack{.notices = 2});
}

TEST(Window, BeginsAnewWithASession) {
  Window window = after({"", 3, {1, 3}, {}});
  EXPECT_TRUE(window.hear({.number = 5}));
  window.begin_session();
  EXPECT_EQ(window.next_number(), 1);
  EXPECT_TRUE(window.hear({.number = 1}));
}

}  // namespace
}  // namespace wire
