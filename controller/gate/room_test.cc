#include "controller/gate/room.h"

#include <gtest/gtest.h>

#include <ostream>
#include <variant>
#include <vector>

namespace controller {
namespace {

using namespace std::chrono_literals;
using Answer = Room::Answer;

constexpr base::Milliseconds kHold = 30s;
constexpr base::Moment kBegan{1h};

// A play in which creates leave and are answered by number, in the order in which they left.
struct Leaves {};
struct Answered {
  std::size_t number;
  Answer answer;
};
struct Ended {};
struct Passes {
  base::Milliseconds time;
};
using Step = std::variant<Leaves, Answered, Ended, Passes>;

struct Case {
  const char* name;
  std::vector<Step> steps;
  std::optional<base::Milliseconds> none_for;  // At the end; nothing: a create may be sent.
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Answered kFull{0, Answer::kFull};  // The first is told that there is no room.

const Case kCases[] = {
    {"at_first", {}, {}},
    {"while_creates_are_made", {Leaves{}, Leaves{}, Answered{0, Answer::kMade}, Leaves{}}, {}},
    {"a_refusal_of_another_kind", {Leaves{}, Answered{0, Answer::kBesides}}, {}},
    {"an_answer_that_is_lost", {Leaves{}, Answered{0, Answer::kNone}}, {}},
    {"full", {Leaves{}, kFull}, 30s},
    {"full_for_a_while", {Leaves{}, kFull, Passes{29s}}, 1s},
    {"the_hold_is_over", {Leaves{}, kFull, Passes{30s}}, {}},
    {"one_asks_then", {Leaves{}, kFull, Passes{30s}, Leaves{}}, Room::kAskAgain},
    {"and_is_refused", {Leaves{}, kFull, Passes{30s}, Leaves{}, Answered{1, Answer::kFull}}, 30s},
    {"and_is_made", {Leaves{}, kFull, Passes{30s}, Leaves{}, Answered{1, Answer::kMade}}, {}},
    {"two_ask_after_it",
     {Leaves{}, kFull, Passes{30s}, Leaves{}, Answered{1, Answer::kMade}, Leaves{}, Leaves{}},
     Room::kAskAgain},
    {"and_is_refused_for_another_reason",
     {Leaves{}, kFull, Passes{30s}, Leaves{}, Answered{1, Answer::kBesides}},
     {}},
    {"and_is_not_answered",
     {Leaves{}, kFull, Passes{30s}, Leaves{}, Answered{1, Answer::kNone}},
     30s},
    {"something_of_ours_ended", {Leaves{}, kFull, Ended{}}, {}},
    {"one_asks_for_it", {Leaves{}, kFull, Ended{}, Leaves{}}, Room::kAskAgain},
    {"and_it_did_not_help", {Leaves{}, kFull, Ended{}, Leaves{}, Answered{1, Answer::kFull}}, 30s},
    {"another_ended_since_it_asked",
     {Leaves{}, kFull, Ended{}, Leaves{}, Ended{}, Answered{1, Answer::kFull}},
     {}},
    {"what_ended_before_the_first_refusal_came", {Leaves{}, Ended{}, kFull}, {}},
    {"what_left_before_and_is_made_is_no_news",
     {Leaves{}, Leaves{}, kFull, Answered{1, Answer::kMade}},
     30s},
    {"what_left_before_and_is_refused_holds_anew",
     {Leaves{}, Leaves{}, kFull, Passes{10s}, Answered{1, Answer::kFull}},
     30s},
};

class RoomFor : public testing::TestWithParam<Case> {};

TEST_P(RoomFor, OneMore) {  // I-429Q
  Room room(kHold);
  base::Moment now = kBegan;
  std::vector<Room::Sent> sent;
  for (const Step& step : GetParam().steps)
    std::visit(base::Overloaded{[&](Leaves) { sent.push_back(room.send()); },
                                [&](const Answered& answered) {
                                  room.learn(sent.at(answered.number), answered.answer, now, "why");
                                },
                                [&](Ended) { room.ended(now); },
                                [&](const Passes& passes) { now += passes.time; }},
               step);
  const auto none = room.none(now);
  EXPECT_EQ(none ? none->retry_after : std::nullopt, GetParam().none_for);
  if (none) EXPECT_EQ(none->message, "why");
}

INSTANTIATE_TEST_SUITE_P(, RoomFor, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

TEST(Room, WakesThoseWhoWaitOnlyWhenAHoldEnds) {
  Room room(kHold);
  EXPECT_FALSE(room.ended(kBegan)) << "nobody waits";
  room.learn(room.send(), Answer::kFull, kBegan, "why");
  EXPECT_TRUE(room.ended(kBegan + 1s));
  EXPECT_FALSE(room.ended(kBegan + 2s)) << "they were woken";
}

TEST(Room, LetsEverybodyGoOnceAsManyWereMade) {
  Room room(kHold);
  room.learn(room.send(), Answer::kFull, kBegan, "why");
  const base::Moment now = kBegan + kHold;
  int made = 0, rounds = 0;
  for (; made < Room::kAskersMax; ++rounds) {
    std::vector<Room::Sent> asking;
    for (; made < Room::kAskersMax && !room.none(now); ++made) asking.push_back(room.send());
    ASSERT_FALSE(asking.empty());
    for (const auto& each : asking) room.learn(each, Answer::kMade, now, "");
  }
  EXPECT_EQ(rounds, 7) << "1, 2, 4, … and the last";
  for (int i = 0; i < 2 * Room::kAskersMax; ++i) {
    EXPECT_FALSE(room.none(now));
    EXPECT_FALSE(room.send().asks);
  }
}

}  // namespace
}  // namespace controller
