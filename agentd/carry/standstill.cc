#include "agentd/carry/standstill.h"

#include "agentd/carry/carrier_words.h"

namespace agentd {
namespace {

aio::Task<> until_either(aio::Condition& one, aio::Condition& other) {
  co_await aio::race(one.wait(), other.wait());
}

}  // namespace

AfterLook after_look(const SeenAtRest& seen) {
  const bool runs_again = seen.now == Standing::kRunning && seen.before != Standing::kRunning;
  if (seen.wanted || runs_again || seen.now == Standing::kEnded) return AfterLook::kAsk;
  if (seen.dial_due && seen.now != Standing::kPaused) return AfterLook::kDial;
  return AfterLook::kRest;
}

aio::Task<bool> rest(Standstill at, Rest how, aio::Condition& moved, const bool& wanted) {
  const base::Moment began = at.clock.now();
  for (Standing before = at.now();;) {
    const Standing now = at.now();
    const base::Milliseconds rested = at.clock.now() - began;
    const bool dial_due = how.dial_after && rested >= *how.dial_after;
    const AfterLook next = after_look({before, now, wanted, dial_due});
    if (next != AfterLook::kRest) co_return next == AfterLook::kAsk;
    before = now;
    const bool may_dial = how.dial_after && now != Standing::kPaused;
    co_await aio::race(until_either(moved, at.directory.moved()),
                       aio::sleep_for(may_dial ? *how.dial_after - rested : kFarAhead));
  }
}

aio::Task<> until_it_runs(Standstill at) {
  for (Standing before = at.now();;) {
    co_await at.directory.moved().wait();
    const Standing now = at.now();
    if (before == Standing::kPaused && now == Standing::kRunning) co_return;
    before = now;
  }
}

}  // namespace agentd
