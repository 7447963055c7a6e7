#include "libs/base/result.h"

namespace base {

std::string_view to_word(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "Invalid";
    case ErrorCode::kDenied:
      return "Denied";
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kConflict:
      return "Conflict";
    case ErrorCode::kRateLimited:
      return "RateLimited";
    case ErrorCode::kUnavailable:
      return "Unavailable";
    case ErrorCode::kCancelled:
      return "Cancelled";
  }
  return "Unknown";
}

}  // namespace base
