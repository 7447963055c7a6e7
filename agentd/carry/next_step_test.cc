#include "agentd/carry/next_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

namespace agentd {
namespace {

using namespace std::chrono_literals;
using wire::Close;
using wire::CloseReason;

// Long at work: the harness was let in, by a way that still holds.
Situation at_work() {
  return {.sandbox = {"team-a", "box"},
          .standing = Standing::kRunning,
          .welcomed = true,
          .way_holds = true,
          .jitter = 0,
          .patience = 300s};
}
Situation at_first() {
  Situation now = at_work();
  now.welcomed = now.way_holds = false;
  now.asked_now = true;
  now.patience = 10s;
  return now;
}
template <typename Change>
Situation with(Situation now, Change change) {
  change(now);
  return now;
}
Situation paused() {
  return with(at_work(), [](auto& now) { now.standing = Standing::kPaused; });
}
Situation to_pause(Standing standing) {
  return with(at_work(), [standing](auto& now) {
    now.standing = standing;
    now.quiesced = true;
  });
}
Situation wanted(Situation now) {
  now.demanded = true;
  return now;
}
Situation wanted_while_paused() { return wanted(paused()); }
Situation unheard(Situation now) {
  now.unheard = true;
  return now;
}
Situation failed(Situation now, int times) {
  now.failures = times;
  return now;
}
Situation out_of_patience(Situation now) {
  now.alone = now.patience;
  return now;
}
Situation without_a_way(Situation now) {
  now.way_holds = false;
  return now;
}
Situation after_asking(Situation now) {
  now.asked_now = true;
  return now;
}

// What is to be done, in a word; a close with what its message must hold.
struct Wanted {
  Step step;
  std::string message = {};
};
Wanted leave(CloseReason reason, std::string message = {},
             std::optional<std::int64_t> retry_after_ms = {}) {
  return {Leave{{.reason = reason, .retry_after_ms = retry_after_ms}}, std::move(message)};
}

struct Case {
  const char* name;
  Ending ending;
  Situation now;
  Wanted wanted;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

const Case kCases[] = {
    // No way in.
    {"a name that cannot be", NoWay{wire::NoEntry::kInvalid, "no such name"}, at_first(),
     leave(CloseReason::kProtocol, "no such name")},
    {"never let in", NoWay{wire::NoEntry::kDenied, "may not"}, at_first(),
     leave(CloseReason::kDenied, "may not")},
    {"let in no longer", NoWay{wire::NoEntry::kDenied, "token ended"}, at_work(),
     leave(CloseReason::kExpired, "token ended")},
    {"there is none", NoWay{wire::NoEntry::kNotFound, "there is no Sandbox"}, at_first(),
     leave(CloseReason::kDenied, "there is no Sandbox")},
    {"gone meanwhile", NoWay{wire::NoEntry::kNotFound, "there is no Sandbox"}, at_work(),
     leave(CloseReason::kDenied)},
    {"ended", NoWay{wire::NoEntry::kEnded, "has ended"}, at_work(), leave(CloseReason::kDenied)},
    {"paused at first: how to resume it is said", NoWay{wire::NoEntry::kPaused, "it is paused"},
     at_first(), leave(CloseReason::kQuiesce, "`sandfleet resume team-a/box`", 5'000)},
    {"paused while somebody wants something", NoWay{wire::NoEntry::kPaused, "it is paused"},
     wanted_while_paused(), leave(CloseReason::kQuiesce, "sandfleet resume", 5'000)},
    {"paused while nobody wants anything",
     NoWay{wire::NoEntry::kPaused, "it is paused"},
     paused(),
     {Rest{}}},
    {"not ready at first", NoWay{wire::NoEntry::kNotReady, "starts"}, at_first(), {Ask{250ms}}},
    {"not ready for longer",
     NoWay{wire::NoEntry::kNotReady, "starts"},
     failed(at_first(), 3),
     {Ask{2s}}},
    {"being woken: the way of before leads nowhere",
     NoWay{wire::NoEntry::kNotReady, "is being woken", 1s},
     wanted_while_paused(),
     {Ask{1s}}},
    {"being woken for too long", NoWay{wire::NoEntry::kNotReady, "is being woken"},
     out_of_patience(wanted_while_paused()), leave(CloseReason::kBusy, "is being woken", 5'000)},
    {"not ready where it ran: the way may lead there still",
     NoWay{wire::NoEntry::kNotReady, "looks again"},
     at_work(),
     {Dial{250ms}}},
    {"told when to ask again",
     NoWay{wire::NoEntry::kRateLimited, "too fast", 7s},
     at_first(),
     {Ask{7s}}},
    {"not ready for very long: no later than that",
     NoWay{wire::NoEntry::kNotReady, "starts"},
     failed(at_first(), 1'000'000),
     {Ask{10s}}},
    {"part of the delay is left to chance",
     NoWay{wire::NoEntry::kNotReady, "starts"},
     with(at_first(), [](auto& now) { now.jitter = 1; }),
     {Ask{125ms}}},
    {"not for ever", NoWay{wire::NoEntry::kNotReady, "it starts"}, out_of_patience(at_first()),
     leave(CloseReason::kBusy, "team-a/box: it starts", 5'000)},
    {"silence is no refusal: the way that holds is taken",
     NoWay{wire::NoEntry::kUnavailable, "no answer"},
     at_work(),
     {Dial{250ms}}},
    {"silence, and no way that holds",
     NoWay{wire::NoEntry::kUnavailable, "no answer"},
     without_a_way(at_work()),
     {Ask{250ms}}},
    {"silence for as long as a session lives", NoWay{wire::NoEntry::kUnavailable, "no answer"},
     out_of_patience(without_a_way(at_work())), leave(CloseReason::kBusy, "no answer", 5'000)},

    // No link.
    {"cut: the same way once more", Broken{"reset"}, at_work(), {Dial{250ms}}},
    {"cut, and the way has ended", Broken{"reset"}, without_a_way(at_work()), {Ask{250ms}}},
    {"not reached: it may be elsewhere",
     Unreachable{"refused"},
     failed(at_work(), 1),
     {Ask{500ms}}},
    {"the router takes the way no more", Unreachable{"401", true}, at_work(), {Ask{250ms}}},
    {"not reached at first", Unreachable{"refused"}, at_first(), {Ask{250ms}}},
    {"not reached for as long as a session lives", Unreachable{"refused"},
     out_of_patience(at_work()), leave(CloseReason::kBusy, "cannot be reached: refused", 5'000)},
    {"cut when it paused", Broken{"reset"}, paused(), {Rest{}}},
    {"cut when it paused, and wanted",
     Broken{"reset"},
     failed(wanted_while_paused(), 1),
     {Ask{500ms}}},
    {"not reached since it was to pause, and nothing is known",
     Unreachable{"404"},
     failed(to_pause(Standing::kUnknown), 1),
     {Rest{10s}}},
    {"not reached since it was to pause, but it runs",
     Unreachable{"404"},
     failed(to_pause(Standing::kRunning), 1),
     {Ask{500ms}}},
    {"cut when it ended", Broken{"reset"},
     with(at_work(), [](auto& now) { now.standing = Standing::kEnded; }),
     leave(CloseReason::kDenied, "team-a/box has ended")},
    {"an impostor: asked for anew", Impostor{}, at_work(), {Ask{250ms}}},
    {"an impostor that stays", Impostor{}, out_of_patience(at_first()),
     leave(CloseReason::kBusy, "has not its key", 5'000)},

    // The executor's word.
    {"about to pause", Close{CloseReason::kQuiesce}, at_work(), {Rest{10s}}},
    {"about to pause, and that is known", Close{CloseReason::kQuiesce}, paused(), {Rest{}}},
    {"about to pause, and the way has ended",
     Close{CloseReason::kQuiesce},
     without_a_way(at_work()),
     {Rest{}}},
    {"about to pause at first", Close{CloseReason::kQuiesce}, failed(at_first(), 1), {Ask{500ms}}},
    {"about to pause at first, for too long", Close{CloseReason::kQuiesce},
     out_of_patience(at_first()), leave(CloseReason::kBusy, "about to pause", 5'000)},
    {"about to pause, and wanted again and again",
     Close{CloseReason::kQuiesce},
     failed(wanted(at_work()), 3),
     {Ask{2s}}},
    {"about to pause, and it may not have read what was wanted",
     Close{CloseReason::kQuiesce},
     unheard(paused()),
     {Ask{250ms}}},
    {"nobody wakes it for what was wanted before",
     NoWay{wire::NoEntry::kPaused, "it is paused"},
     unheard(paused()),
     {Rest{}}},
    {"cut when it paused, and it may not have read what was wanted",
     Broken{"reset"},
     failed(unheard(paused()), 1),
     {Ask{500ms}}},
    {"replaced", Close{CloseReason::kReplaced, "a newer link"}, at_work(),
     leave(CloseReason::kReplaced, "a newer link")},
    {"expired", Close{CloseReason::kExpired}, at_work(), {Ask{0ms}}},
    {"expired again at once", Close{CloseReason::kExpired}, failed(at_work(), 1), {Ask{500ms}}},
    {"expired though just asked for, as clocks differ",
     Close{CloseReason::kExpired},
     failed(after_asking(at_work()), 5),
     {Ask{8s}}},
    {"expired whatever is asked for, for too long", Close{CloseReason::kExpired},
     out_of_patience(after_asking(at_work())),
     leave(CloseReason::kBusy, "its executor counts the token for it as ended", 5'000)},
    {"denied: the run moved", Close{CloseReason::kDenied}, at_work(), {Ask{0ms}}},
    {"denied with what was just asked for",
     Close{CloseReason::kDenied},
     after_asking(at_work()),
     {Ask{250ms}}},
    {"denied whatever is asked for", Close{CloseReason::kDenied, "another run"},
     failed(after_asking(at_work()), 2), leave(CloseReason::kDenied, "another run")},
    {"of another version", Close{CloseReason::kVersion, "2 is spoken"}, at_first(),
     leave(CloseReason::kVersion, "2 is spoken")},
    {"busy", Close{CloseReason::kBusy, "full", 30'000}, at_work(), {Dial{30s}}},
    {"busy for too long", Close{CloseReason::kBusy, "full", 30'000}, out_of_patience(at_first()),
     leave(CloseReason::kBusy, "full", 30'000)},
    {"restarting", Close{CloseReason::kShutdown}, at_work(), {Dial{250ms}}},
    {"lost", Close{CloseReason::kLost}, at_work(), {Ask{0ms}}},
    {"silent", Close{CloseReason::kSilent}, at_work(), {Dial{250ms}}},
    {"a broken rule", Close{CloseReason::kProtocol, "a gap"}, at_work(),
     leave(CloseReason::kProtocol, "a gap")},
    {"a word of a later version", Close{CloseReason::kOther}, at_work(), {Dial{250ms}}},
};

class NextStep : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Of, NextStep, testing::ValuesIn(kCases), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

TEST_P(NextStep, FollowsFromHowItEnded) {
  Step step = next_step(GetParam().ending, GetParam().now);
  if (auto* left = std::get_if<Leave>(&step)) {
    EXPECT_THAT(left->close.message, testing::HasSubstr(GetParam().wanted.message));
    left->close.message.clear();
  }
  EXPECT_EQ(step, GetParam().wanted.step);
}

TEST(NextSteps, CutLongWordsToWhatFits) {
  const Step step = next_step(NoWay{wire::NoEntry::kDenied, std::string(5'000, 'x')}, at_first());
  EXPECT_EQ(std::get<Leave>(step).close.message.size(), 1'024u);
}

}  // namespace
}  // namespace agentd
