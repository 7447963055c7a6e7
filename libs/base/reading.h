#pragma once

#include <filesystem>
#include <string>

#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace base {

// From where it stands to its end; kInvalid when that is more than `bytes_max`. `path` is for the
// message.
Result<std::string> read_to_end(int fd, const std::filesystem::path& path, std::size_t bytes_max);

// The content of a regular file, for whoever must not wait: a pipe, a terminal, a device or a
// folder by that name is kInvalid at once, whenever it took the file's place.
Result<std::string> read_regular_file(const std::filesystem::path& path, std::size_t bytes_max);

// The line that comes next on a pipe or a socket, without its end and with nothing read behind it;
// what came of it when the other side ends, when it grows to `bytes_max`, and at `within`.
std::string read_line(int fd, std::size_t bytes_max, Milliseconds within);

}  // namespace base
