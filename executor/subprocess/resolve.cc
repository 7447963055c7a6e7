#include "executor/subprocess/resolve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "executor/process/spawn.h"

namespace executor {
namespace {

bool is_executable(const std::string& path) {
  struct stat found{};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         ::faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
}

}  // namespace

ProcessResult<std::string> resolve_executable(const std::string& command,
                                              const Environment& environment) {
  if (command.empty() || command.find('\0') != std::string::npos || command.size() > kPathBytesMax)
    return ProcessFailure(ProcessFault::kInvalid, "the name of a program is empty or unfit");
  if (command[0] != '/' && command.find('/') != std::string::npos)
    return ProcessFailure(ProcessFault::kInvalid, "'", command,
                          "' is a relative path; give a name or an absolute path");
  for (const std::string& place : search_path(command, environment)) {
    if (place[0] != '/' || !is_executable(place)) continue;
    std::error_code failed;
    const auto canonical = std::filesystem::canonical(place, failed);
    if (!failed) return canonical.string();
  }
  return ProcessFailure(ProcessFault::kExecutableNotFound, "no executable file '", command,
                        "' is to be found");
}

}  // namespace executor
