#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "libs/base/clock.h"

namespace local_e2b {

// How long a cgroup of a box or a server may stand empty: longer than a box takes to be built.
inline constexpr base::Seconds kEmptyCgroupMax{60};

// Ends the boxes below `cgroup2`, of any server, whose root folder was removed: with it went the
// records that could name them. A frozen one cannot see that for itself; of one that did, and
// ended, the empty cgroup is removed once it is `empty_max` old, and so is a server's. Returns the
// ids.
std::vector<std::string> destroy_orphans(const std::filesystem::path& cgroup2,
                                         base::Seconds empty_max = kEmptyCgroupMax);

}  // namespace local_e2b
