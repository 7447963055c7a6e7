#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/wire/token.h"

// What a caller may change inside the sandbox. Reading is free in every mode.
namespace executor {

using PermissionMode = wire::Ceiling;

struct Permission {
  PermissionMode mode = PermissionMode::kReadOnly;
  // Absolute folders. Under kWorkspaceWrite a change is allowed below what all of them hold, and
  // below the temporary areas.
  std::vector<std::string> workspaces;
};

// A call may ask for less than its ceiling; of more it gets the ceiling. A mode that nobody knows
// is the narrowest.
Permission narrow(Permission ceiling, std::optional<std::string_view> mode,
                  std::optional<std::string> workspace);

// Whether a handle made under `made` is out of reach for a caller who has but `caller`.
bool is_wider(PermissionMode made, PermissionMode caller);

// Where a sandbox's programs keep what need not last.
const std::vector<std::string>& temporary_areas();

// The folders below which `permission` allows changes, as they are called right now: canonical, and
// only those that are there. Nothing under kReadOnly; "/" under kDangerFullAccess. Blocks.
std::vector<std::string> writable_roots(const Permission& permission);

// Whether what stands at `path`, which is canonical, may be made, changed or removed. A root itself
// may not, but for "/", which is no fence.
bool may_change(const std::vector<std::string>& roots, std::string_view path);

}  // namespace executor
