#include "executor/filesystem/failure.h"

#include <cerrno>

namespace executor {
namespace {

FsCode code_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:  // Below something that is no folder there is nothing.
      return FsCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return FsCode::kPermissionDenied;
    case EISDIR:
      return FsCode::kNotRegularFile;
    default:
      return FsCode::kIoError;
  }
}

}  // namespace

std::string_view to_word(FsCode code) {
  switch (code) {
    case FsCode::kNotFound:
      return "FS_NOT_FOUND";
    case FsCode::kNotDirectory:
      return "FS_NOT_DIRECTORY";
    case FsCode::kNotText:
      return "FS_NOT_TEXT";
    case FsCode::kNotRegularFile:
      return "FS_NOT_REGULAR_FILE";
    case FsCode::kTooLarge:
      return "FS_TOO_LARGE";
    case FsCode::kPermissionDenied:
      return "FS_PERMISSION_DENIED";
    case FsCode::kSandboxDenied:
      return "FS_SANDBOX_DENIED";
    case FsCode::kIoError:
      return "FS_IO_ERROR";
    case FsCode::kStaleVersion:
      return "FS_STALE_VERSION";
    case FsCode::kNotObserved:
      return "FS_NOT_OBSERVED";
    case FsCode::kAmbiguousEdit:
      return "FS_AMBIGUOUS_EDIT";
    case FsCode::kEditNotFound:
      return "FS_EDIT_NOT_FOUND";
    case FsCode::kAborted:
      return "FS_ABORTED";
  }
  return "FS_IO_ERROR";
}

FsError::FsError(const FileError& error) : base::Error(error), fs(code_of(error.error_number)) {}

FsError aborted(std::string_view what, std::string_view path) {
  return fs_error(FsCode::kAborted, "the call to ", what, " ", path, " was aborted");
}

}  // namespace executor
