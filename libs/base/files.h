#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace base {

// Errors name the path and what the kernel said. kNotFound only for a path that is not there.
Error errno_error(std::string_view what, const std::filesystem::path& path, int error_number);

Result<std::string> read_file(const std::filesystem::path& path, std::size_t bytes_max = 64u << 20);
// Readers see the old content or the new, also after a crash: staged beside the target, fsynced,
// renamed, the folder fsynced.
// kPastProcess leaves out the fsyncs: enough for what need not outlive a power loss.
enum class Durable { kPastPowerLoss, kPastProcess };
Result<Done> write_file_atomically(const std::filesystem::path& path, std::string_view content,
                                   mode_t mode, Durable durable = Durable::kPastPowerLoss);
Result<Done> make_folders(const std::filesystem::path& path, mode_t mode);
// An exclusive lock that the kernel frees when the process ends; kConflict when another holds it.
// Waits out those who only look.
Result<Fd> lock_file(const std::filesystem::path& path);
// Whether somebody holds it now; false where there is no such file. The look itself is a lock for a
// moment.
Result<bool> is_locked(const std::filesystem::path& path);
Result<Done> write_all(int fd, std::string_view bytes);

}  // namespace base
