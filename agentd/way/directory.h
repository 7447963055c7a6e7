#pragma once

#include "libs/aio/loop.h"
#include "libs/wire/frames/message.h"

namespace agentd {

enum class Standing {
  kUnknown,  // Nothing was heard of it, or not for too long to believe.
  kRunning,  // Its executor answered when last looked at.
  kPaused,   // Also on the way there, and on the way back.
  kEnded,    // It will not run again: ended for good, or deleted.
};

// What the watch says of sandboxes: a hint that saves asking and dialling in vain. It opens
// nothing, and nobody waits for it alone.
class Directory {
 public:
  virtual ~Directory() = default;
  virtual Standing standing(const wire::SandboxName& sandbox) const = 0;
  // Notified after the standing of any sandbox moved.
  virtual aio::Condition& moved() = 0;
};

}  // namespace agentd
