#pragma once

namespace cli {

// This process's own side of what runs in a sandbox.
struct Ends {
  int in = 0, out = 1, err = 2;
  int signals = -1;      // Of hold_signals.
  bool watched = false;  // By a person, who wants to know why nothing moves.
};

}  // namespace cli
