#pragma once

#include <string>
#include <string_view>

#include "libs/base/files.h"
#include "libs/base/result.h"

namespace archives {

enum class Fault {
  kUnfit,       // The archive: it is broken, or holds what must not be unpacked.
  kTooLarge,    // Beyond a limit.
  kExists,      // Something stands in the way that may not be replaced.
  kFilesystem,  // The kernel objected, with error_number.
  kCancelled,
};

// Why an archive was not made, or not unpacked.
struct Failure : base::Error {
  Failure(Fault fault, base::Error error, int error_number = 0)
      : base::Error(std::move(error)), fault(fault), error_number(error_number) {}
  // By the kernel's number.
  Failure(std::string_view what, std::string_view path, int error_number)
      : Failure(Fault::kFilesystem, base::errno_error(what, std::string(path), error_number),
                error_number) {}

  Fault fault;
  int error_number;
};

template <typename T>
using Result = base::Result<T, Failure>;

template <typename... Parts>
Failure unfit(const Parts&... parts) {
  return {Fault::kUnfit, base::error(base::ErrorCode::kInvalid, parts...)};
}
template <typename... Parts>
Failure too_large(const Parts&... parts) {
  return {Fault::kTooLarge, base::error(base::ErrorCode::kInvalid, parts...)};
}
inline Failure cancelled() {
  return {Fault::kCancelled, base::error(base::ErrorCode::kCancelled, "given up")};
}

}  // namespace archives
