#pragma once

#include <string>

#include "libs/base/clock.h"

namespace kube {

// Kubernetes' MicroTime, which takes six digits after the point and nothing else:
// "2026-11-29T17:46:31.120000Z".
std::string to_micro_time(base::WallTime time);

}  // namespace kube
