#pragma once

#include <filesystem>

#include "libs/base/result.h"

namespace local_e2b {

// Removes a folder that somebody we do not trust has filled. Follows no link, enters no other
// mount, holds a bounded number of descriptors whatever the depth. A folder that is not there is
// removed already.
base::Result<base::Done> remove_tree(const std::filesystem::path& folder);

}  // namespace local_e2b
