#pragma once

#include <string>

#include "executor/confine/permission.h"
#include "executor/filesystem/failure.h"

namespace executor {

// Whether what stands, or is to stand, at `key` may be changed, by where the roots are now.
bool permits(const Permission& permission, const std::string& key);
FsResult<base::Done> permit(const Permission& permission, const std::string& key);

}  // namespace executor
