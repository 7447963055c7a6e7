#include "executor/sessions/file_answers.h"

#include <utility>

namespace executor {

wire::Failure failure_of(const FsError& error) {
  using wire::FailureCode;
  static constexpr std::pair<FsCode, FailureCode> kCodes[] = {
      {FsCode::kNotFound, FailureCode::kFsNotFound},
      {FsCode::kNotDirectory, FailureCode::kFsNotDirectory},
      {FsCode::kNotText, FailureCode::kFsNotText},
      {FsCode::kNotRegularFile, FailureCode::kFsNotRegularFile},
      {FsCode::kTooLarge, FailureCode::kFsTooLarge},
      {FsCode::kPermissionDenied, FailureCode::kFsPermissionDenied},
      {FsCode::kSandboxDenied, FailureCode::kFsSandboxDenied},
      {FsCode::kIoError, FailureCode::kFsIoError},
      {FsCode::kStaleVersion, FailureCode::kFsStaleVersion},
      {FsCode::kNotObserved, FailureCode::kFsNotObserved},
      {FsCode::kAmbiguousEdit, FailureCode::kFsAmbiguousEdit},
      {FsCode::kEditNotFound, FailureCode::kFsEditNotFound},
      {FsCode::kAborted, FailureCode::kFsAborted},
  };
  if (error.code == base::ErrorCode::kRateLimited)
    return wire::failure(FailureCode::kBusy, error.message);
  for (const auto& [one, code] : kCodes)
    if (one == error.fs) return wire::failure(code, error.message);
  return wire::failure(FailureCode::kFsIoError, error.message);
}

FileAddress address_of(const wire::Place& place, const std::string& cwd) {
  if (place.target) return FileAddress::of_target(*place.target);
  return FileAddress::of_path(*place.path, place.cwd.value_or(cwd));
}
FileAddress address_of(const wire::PathPlace& place, const std::string& cwd) {
  return FileAddress::of_path(place.path, place.cwd.value_or(cwd));
}

}  // namespace executor
