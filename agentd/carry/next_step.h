#pragma once

#include <optional>
#include <string>
#include <variant>

#include "agentd/way/directory.h"
#include "agentd/way/way.h"
#include "libs/base/clock.h"
#include "libs/wire/frames/message.h"

namespace agentd {

// How an attempt at an executor ended, or the link that came of it.
struct Unreachable {  // Nothing that speaks the protocol was reached.
  std::string message;
  bool denied = false;  // What the way has for the router is not good any more.
};
struct Impostor {};  // What answered has not the executor's key.
struct Broken {      // The link was cut, or fell silent.
  std::string message;
};
using Ending = std::variant<NoWay, Unreachable, Impostor, Broken, wire::Close>;

// What is known besides when one has ended.
struct Situation {
  wire::SandboxName sandbox;
  Standing standing = Standing::kUnknown;
  bool welcomed = false;   // The harness was once let in.
  bool asked_now = false;  // The way was asked for in this attempt.
  bool way_holds = false;  // There is a way whose token has not ended.
  bool quiesced = false;   // The executor said that the sandbox is about to pause, and is not back.
  bool demanded = false;   // The harness wants something since it rests.
  bool unheard = false;  // It wanted something just before, which may not have got there, or since
                         // has bytes to send or room for some.
  int failures = 0;      // In a row, without a link in between.
  double jitter = 1;     // 0 to 1.
  base::Milliseconds alone{};     // So long the harness has been without an executor.
  base::Milliseconds patience{};  // So long it may be.
};

// What carries a harness on.
struct Dial {  // By the way that there is.
  base::Milliseconds after{};
  bool operator==(const Dial&) const = default;
};
struct Ask {  // For a way, then dial.
  base::Milliseconds after{};
  bool operator==(const Ask&) const = default;
};
// The sandbox stands still. It is asked for when the directory says that it runs, or when the
// harness wants something, or did when it was lost: asking may wake it. Without a directory to be
// believed it is dialled now and then, which wakes nothing.
struct Rest {
  std::optional<base::Milliseconds> dial_after;
  bool operator==(const Rest&) const = default;
};
struct Leave {  // The harness is told why.
  wire::Close close;
  bool operator==(const Leave&) const = default;
};
using Step = std::variant<Dial, Ask, Rest, Leave>;

// Pure.
Step next_step(const Ending& ending, const Situation& situation);

}  // namespace agentd
