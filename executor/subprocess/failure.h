#pragma once

#include <string>

#include "libs/base/result.h"

namespace executor {

// What callers of subprocesses act on differently.
enum class ProcessFault {
  kInvalid,      // The request can never succeed as written; nothing was done.
  kDenied,       // The handle was made under a wider mode than the caller's.
  kNotFound,     // No such handle.
  kConflict,     // The handle is taken.
  kBusy,         // Too much at once; nothing was done.
  kCancelled,    // It was ended before it began.
  kLost,         // It went with its incarnation.
  kSpawnFailed,  // The program did not begin.
  kExecutableNotFound,
  kTerminateFailed,         // That nothing is left could not be proven; may be asked again.
  kConfinementUnavailable,  // The kernel cannot hold a program to the caller's mode.
};

struct ProcessFailure : base::Error {
  // What a spawn that failed was at.
  enum class Step { kNone, kFolder, kProgram, kResources };

  template <typename... Parts>
  explicit ProcessFailure(ProcessFault fault, const Parts&... parts)
      : base::Error(base::error(code_of(fault), parts...)), fault(fault) {}

  ProcessFault fault;
  Step step = Step::kNone;
  int error_number = 0;  // The kernel's; 0 when it was not the one to object.

 private:
  static base::ErrorCode code_of(ProcessFault fault) {
    using base::ErrorCode;
    switch (fault) {
      case ProcessFault::kInvalid:
      case ProcessFault::kSpawnFailed:
        return ErrorCode::kInvalid;
      case ProcessFault::kDenied:
        return ErrorCode::kDenied;
      case ProcessFault::kNotFound:
      case ProcessFault::kLost:
      case ProcessFault::kExecutableNotFound:
        return ErrorCode::kNotFound;
      case ProcessFault::kConflict:
        return ErrorCode::kConflict;
      case ProcessFault::kBusy:
        return ErrorCode::kRateLimited;
      case ProcessFault::kCancelled:
        return ErrorCode::kCancelled;
      case ProcessFault::kTerminateFailed:
      case ProcessFault::kConfinementUnavailable:
        return ErrorCode::kUnavailable;
    }
    return ErrorCode::kUnavailable;
  }
};

template <typename T>
using ProcessResult = base::Result<T, ProcessFailure>;

}  // namespace executor
