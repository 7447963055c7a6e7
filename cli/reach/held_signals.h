#pragma once

#include <optional>

#include "libs/base/fd.h"

namespace cli {

// From now on the signals by which people and machines end programs do nothing but make this
// descriptor readable, and writing where nobody reads is an error and no more.
base::Fd hold_signals();

// The same, of such a descriptor, with those that concern whoever has a terminal: its size, ^\\,
// and being stopped and continued.
void hold_terminal_signals(int descriptor);
// Stops with the rest of its job, as by ^Z; returns once it was continued. Where nobody could do
// that, it does not stop: setpgid(2), orphaned process groups.
void stop_as_job();

// The next one that has come there, if any; does not wait.
std::optional<int> next_signal(int descriptor);

}  // namespace cli
