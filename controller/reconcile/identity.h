#pragma once

#include <optional>

#include "libs/api/sandbox.h"
#include "libs/wire/admin.h"

namespace controller {

// What a newly seen run does to the identity that clients know.
struct Judgement {
  std::int64_t incarnation = 0;
  std::int64_t run = 0;
  // For the sessions: why what they knew is gone.
  std::optional<wire::News> news = {};
  bool operator==(const Judgement&) const = default;
};

// Compares the marker that the executor read from its folder with the status on record. A marker
// newer than the status is a crash between the two writes, not a roll-back.
Judgement judge(const api::Sandbox& wanted, const wire::Identity& marker, bool new_run,
                bool rolled_back);

}  // namespace controller
