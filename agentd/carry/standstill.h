#pragma once

#include "agentd/carry/next_step.h"
#include "agentd/way/directory.h"
#include "libs/aio/loop.h"
#include "libs/base/clock.h"

namespace agentd {

// What comes of a look at a sandbox that stands still.
enum class AfterLook { kRest, kAsk, kDial };
struct SeenAtRest {
  Standing before = Standing::kUnknown, now = Standing::kUnknown;
  bool wanted = false;    // Its harness has asked for something, or would move bytes.
  bool dial_due = false;  // The way that is held may be dialled, and it is time.
};
AfterLook after_look(const SeenAtRest& seen);

// Where one stands still, by what the watch says of it.
struct Standstill {
  Directory& directory;
  const wire::SandboxName& sandbox;
  const base::Clock& clock;

  Standing now() const { return directory.standing(sandbox); }
};

// Until there is something to do; true: a way is to be asked for, else the one that is held is to
// be dialled. `moved` tells when to look whether it is wanted.
aio::Task<bool> rest(Standstill at, Rest how, aio::Condition& moved, const bool& wanted);
// Of one that is paused, or comes to be: whoever waits need not wait longer.
aio::Task<> until_it_runs(Standstill at);

}  // namespace agentd
