#pragma once

#include <string>
#include <vector>

#include "local_e2b/box/blueprint.h"

namespace local_e2b {

// The mounts that only the host's root can make ready, in the order in which they are handed over.
enum Handed : std::size_t { kRootFolder, kLayers, kExecutor, kBakedExecutor, kFirstLower };
inline constexpr std::size_t kHandedMax = 64;

// The life of the box's first process from its clone until it is the executor: it builds the
// world around itself with the mounts received from `builder`, and does not return. A failure is
// written to `report` as one line of JSON; a close without one says that the executor runs.
[[noreturn]] void become_init(const Blueprint& plan, int builder, int report, int log);

void add_init_step_names(std::vector<std::string>& names);

// Sends and receives mounts over a socket pair.
base::Result<base::Done> send_mounts(int socket, const std::vector<int>& mounts);
base::Result<std::vector<int>> receive_mounts(int socket);

}  // namespace local_e2b
