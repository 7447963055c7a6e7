#include "executor/admin/runtime_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "libs/base/files.h"

namespace executor {
namespace {

constexpr const char* kLock = "executor.lock";

// Its id, when it is fit.
base::Result<std::string> judge(const std::filesystem::path& path) {
  using base::ErrorCode;
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0)
    return base::error(ErrorCode::kInvalid,
                       base::errno_error("open the runtime folder", path, errno).message,
                       "; make it with mode 0700 first");
  if (!S_ISDIR(found.st_mode))
    return base::error(ErrorCode::kInvalid, "the runtime folder ", path.string(),
                       " is not a real folder; links are not followed");
  if (found.st_uid != ::geteuid())
    return base::error(ErrorCode::kInvalid, "the runtime folder ", path.string(),
                       " belongs to uid ", std::to_string(found.st_uid), ", not to ",
                       std::to_string(::geteuid()));
  if ((found.st_mode & 07777) != 0700)
    return base::error(ErrorCode::kInvalid, "the runtime folder ", path.string(),
                       " must have mode 0700: others may not even look into it");
  return std::to_string(found.st_dev) + "-" + std::to_string(found.st_ino);
}

}  // namespace

base::Result<RuntimeFolder> RuntimeFolder::open(const std::filesystem::path& path) {
  TRY(std::string id, judge(path));
  TRY(base::Fd lock, base::lock_file(path / kLock));
  return RuntimeFolder(path, std::move(id), std::move(lock));
}

bool RuntimeFolder::is_taken(const std::filesystem::path& path) {
  const auto locked = base::is_locked(path / kLock);
  return locked && *locked;
}

}  // namespace executor
