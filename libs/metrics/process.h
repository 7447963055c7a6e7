#pragma once

#include "libs/metrics/registry.h"

namespace metrics {

// The process_* metrics that every Prometheus client has, for a program's table...
Table process_table();
// ...and what sets them, read from /proc at each exposition.
void watch_process(Registry& registry);

}  // namespace metrics
