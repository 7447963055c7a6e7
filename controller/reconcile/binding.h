#pragma once

#include "controller/reconcile/decide.h"

namespace controller {

// The next step until an E2B sandbox is bound: found, or created once what earlier creates made is
// certain. Pure.
Action bring_to_life(const Observation& seen);

}  // namespace controller
