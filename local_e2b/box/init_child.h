#pragma once

#include <string>
#include <vector>

#include "local_e2b/box/blueprint.h"

namespace local_e2b {

// The life of the box's first process from its clone until it is the executor: it builds the
// world around itself with the mounts received from `builder`, and does not return. A failure is
// written to `report` as one line of JSON; a close without one says that the executor runs.
[[noreturn]] void become_init(const Blueprint& plan, int builder, int report, int log);

void add_init_step_names(std::vector<std::string>& names);

}  // namespace local_e2b
