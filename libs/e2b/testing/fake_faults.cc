#include "libs/e2b/testing/fake_faults.h"

namespace e2b {
namespace {

using base::error;
using base::ErrorCode;

constexpr base::Seconds kRetryAfter{1};

CreateFailure::Kind create_kind_of(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kNotSent:
      return CreateFailure::Kind::kNotSent;
    case Fault::Kind::kRefused503:
      return CreateFailure::Kind::kCapacity;
    case Fault::Kind::kRateLimited:
      return CreateFailure::Kind::kRate;
    default:
      return CreateFailure::Kind::kAmbiguous;
  }
}

}  // namespace

std::string_view to_word(Operation operation) {
  switch (operation) {
    case Operation::kCreate:
      return "create";
    case Operation::kGet:
      return "get";
    case Operation::kHandle:
      return "handle";
    case Operation::kList:
      return "list";
    case Operation::kKill:
      return "kill";
    case Operation::kPause:
      return "pause";
    case Operation::kConnect:
      return "connect";
    case Operation::kExtend:
      return "extend";
  }
  return "unknown";
}

base::Error failure_of(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kNotSent:
      return error(ErrorCode::kUnavailable, "connection refused");
    case Fault::Kind::kRefused503:
      return error(ErrorCode::kUnavailable, "503: refused, try again");
    case Fault::Kind::kRateLimited:
      return {ErrorCode::kRateLimited, "429: rate limit exceeded", kRetryAfter};
    case Fault::Kind::kReplyLost:
    case Fault::Kind::kLate:
      return error(ErrorCode::kUnavailable, "no answer in time");
    default:
      return error(ErrorCode::kUnavailable, "500: internal error");
  }
}

CreateFailure create_failure_of(Fault::Kind kind) {
  return {failure_of(kind), create_kind_of(kind)};
}

std::optional<Fault> FakeFaults::draw(Operation operation) {
  auto& scripted = scripted_[operation];
  if (!scripted.empty()) {
    const Fault fault = scripted.front();
    scripted.pop_front();
    return fault;
  }
  for (const Chance& chance : chances_)
    if (chance.operation == operation &&
        std::uniform_real_distribution<double>(0, 1)(random_) < chance.probability)
      return chance.fault;
  return std::nullopt;
}

}  // namespace e2b
