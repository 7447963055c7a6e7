#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libs/base/json.h"
#include "libs/base/result.h"
#include "libs/net/transport.h"

// Why the API server did not do as asked: its Status objects as values.
namespace kube {

// The word that the server gives; those that callers act on, and kOther.
enum class Reason {
  kOther,
  kNoAnswer,  // Not the server's word: it did not answer, or broke off.
  kUnauthorized,
  kForbidden,
  kNotFound,
  kAlreadyExists,
  kConflict,    // A precondition (resourceVersion, uid) failed, or another owner has a field.
  kPatchUnfit,  // A test of a JSON patch failed, or a path in it is not there.
  kExpired,     // 410: the resourceVersion or continue token is too old.
  kInvalid,
  kTooManyRequests,
  kTimeout,  // The server gave up, and may have done it all the same.
};
std::string_view to_word(Reason reason);

struct Cause {
  std::string reason, field, message;
  bool operator==(const Cause&) const = default;
};

// As codes: kConflict for AlreadyExists, Conflict, PatchUnfit and Expired (read again); kDenied,
// kNotFound, kInvalid and kRateLimited as they say; kUnavailable for the rest and for no answer.
struct Refusal : base::Error {
  Reason reason = Reason::kOther;
  int status = 0;  // HTTP; 0: no answer.
  std::vector<Cause> causes = {};
  bool sent = true;  // False only when it is certain that nothing reached the server.
};

template <typename T>
using Answer = base::Result<T, Refusal>;

// `what` is for people: "update sandboxes default/a". `tame` makes the server's words fit to show.
using Tame = std::function<std::string(std::string_view)>;
Refusal refusal_of(std::string_view what, const net::Response& response, const Tame& tame);
Refusal refusal_of(std::string_view what, const net::Failure& failure);
// Of the Status in an ERROR event of a watch.
Refusal refusal_of_status(std::string_view what, const base::Json& status, const Tame& tame);
// Our own doing, before anything was sent.
Refusal refusal_of(const base::Error& error);

}  // namespace kube
