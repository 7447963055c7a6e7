#pragma once

#include <optional>

#include "libs/base/fd.h"

namespace cli {

// From now on the signals by which people and machines end programs do nothing but make this
// descriptor readable, and writing where nobody reads is an error and no more.
base::Fd hold_signals();

// The next one that has come there.
std::optional<int> next_signal(int descriptor);

}  // namespace cli
