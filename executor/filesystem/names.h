#pragma once

#include <dirent.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "executor/files/file_error.h"
#include "libs/base/fd.h"

namespace executor {

// Calls `each` with every name in an open folder (not O_PATH) until it says false, in no order.
FileResult<base::Done> for_each_name(const base::Fd& folder, const std::string& path,
                                     const std::function<bool(const std::string&)>& each);

struct NameRange {
  std::string from;
  bool with_from = true;  // That name itself too, if it is there.
  std::span<const std::string> excludes = {};
};
// The first `count_max` names of the range in an open folder, by their bytes. What is on its way to
// its place is left out.
FileResult<std::vector<std::string>> first_names(const base::Fd& folder, const std::string& path,
                                                 const NameRange& range, std::size_t count_max);

}  // namespace executor
