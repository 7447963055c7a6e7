#pragma once

#include <string_view>

#include "executor/files/file_error.h"
#include "libs/base/result.h"

namespace executor {

// Why a harness's file operation failed, in the thirteen words that its tools act on.
enum class FsCode {
  kNotFound,
  kNotDirectory,
  kNotText,
  kNotRegularFile,
  kTooLarge,
  kPermissionDenied,
  kSandboxDenied,  // Its permission mode forbids it.
  kIoError,
  kStaleVersion,
  kNotObserved,  // It exists, which the caller did not know.
  kAmbiguousEdit,
  kEditNotFound,
  kAborted,
};
std::string_view to_word(FsCode code);  // "FS_NOT_FOUND"

struct FsError : base::Error {
  FsCode fs = FsCode::kIoError;

  FsError(base::Error error, FsCode code = FsCode::kIoError)
      : base::Error(std::move(error)), fs(code) {}
  // By the kernel's number.
  FsError(const FileError& error);
  FsError(std::string_view what, const std::filesystem::path& path, int error_number)
      : FsError(FileError(what, path, error_number)) {}
};

template <typename T>
using FsResult = base::Result<T, FsError>;

template <typename... Parts>
FsError fs_error(FsCode code, const Parts&... parts) {
  base::ErrorCode kind = base::ErrorCode::kInvalid;
  if (code == FsCode::kNotFound) kind = base::ErrorCode::kNotFound;
  if (code == FsCode::kSandboxDenied || code == FsCode::kPermissionDenied)
    kind = base::ErrorCode::kDenied;
  if (code == FsCode::kStaleVersion || code == FsCode::kNotObserved)
    kind = base::ErrorCode::kConflict;
  if (code == FsCode::kIoError) kind = base::ErrorCode::kUnavailable;
  if (code == FsCode::kAborted) kind = base::ErrorCode::kCancelled;
  return {base::error(kind, parts...), code};
}

// There is no room for it just now: nothing was done, and it may be asked again.
template <typename... Parts>
FsError fs_busy(const Parts&... parts) {
  return {base::error(base::ErrorCode::kRateLimited, parts...), FsCode::kIoError};
}

FsError aborted(std::string_view what, std::string_view path);

}  // namespace executor
