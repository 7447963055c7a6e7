#pragma once

#include "libs/base/json.h"
#include "local_e2b/state/sandbox.h"

// How the control plane shows a sandbox. Pure.
namespace local_e2b {

inline constexpr char kClientId[] = "6532622b";  // A constant that older clients append to ids.

struct MachineSize {
  std::int64_t cpu_count = 1, memory_mb = 1, disk_mb = 1;
};
MachineSize machine_size();

base::Json describe_handle(const Sandbox& sandbox);  // What create, connect and resume answer.
base::Json describe_detail(const Sandbox& sandbox, const MachineSize& machine);
base::Json describe_listed(const Sandbox& sandbox, const MachineSize& machine);

}  // namespace local_e2b
