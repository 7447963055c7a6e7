#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string_view>

#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace executor {

struct RegularFile {
  base::Fd fd;
  off_t bytes = 0;
};

// Opens or makes (0600) a file where others may put things: not through a link, and not waiting for
// the other end of a pipe. `flags`: O_RDWR, O_APPEND, ...; `what`: for the error, "open the log".
base::Result<RegularFile> open_regular_file(std::string_view what,
                                            const std::filesystem::path& path, int flags);

}  // namespace executor
