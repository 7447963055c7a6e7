#include "libs/kube/refusal.h"

#include <algorithm>
#include <iterator>

#include "libs/base/strings.h"

namespace kube {

using base::ErrorCode;
using base::Json;

namespace {

constexpr base::Seconds kRetryAfterMax{3'600};
constexpr std::size_t kCausesMax = 20;
constexpr std::size_t kCausesShown = 3;

struct Known {
  Reason reason;
  std::string_view word;
  ErrorCode code;
};
constexpr Known kKnown[] = {
    {Reason::kOther, "Other", ErrorCode::kUnavailable},
    {Reason::kNoAnswer, "NoAnswer", ErrorCode::kUnavailable},
    {Reason::kUnauthorized, "Unauthorized", ErrorCode::kDenied},
    {Reason::kForbidden, "Forbidden", ErrorCode::kDenied},
    {Reason::kNotFound, "NotFound", ErrorCode::kNotFound},
    {Reason::kAlreadyExists, "AlreadyExists", ErrorCode::kConflict},
    {Reason::kConflict, "Conflict", ErrorCode::kConflict},
    {Reason::kPatchUnfit, "PatchUnfit", ErrorCode::kConflict},
    {Reason::kExpired, "Expired", ErrorCode::kConflict},
    {Reason::kInvalid, "Invalid", ErrorCode::kInvalid},
    {Reason::kTooManyRequests, "TooManyRequests", ErrorCode::kRateLimited},
    {Reason::kTimeout, "Timeout", ErrorCode::kUnavailable},
};

const Known& known(Reason reason) { return *std::ranges::find(kKnown, reason, &Known::reason); }

// Where the server gave no word, or one that we need not tell apart, the number decides.
Reason reason_of_number(int status) {
  switch (status) {
    case 401:
      return Reason::kUnauthorized;
    case 403:
      return Reason::kForbidden;
    case 404:
      return Reason::kNotFound;
    case 409:
      return Reason::kConflict;
    case 410:
      return Reason::kExpired;
    case 429:
      return Reason::kTooManyRequests;
    case 504:
      return Reason::kTimeout;
    default:
      return status >= 400 && status < 500 ? Reason::kInvalid : Reason::kOther;
  }
}

Reason reason_of(const std::string& word, int status) {
  if (word == "ServerTimeout") return Reason::kTimeout;
  if (word == "Gone") return Reason::kExpired;
  for (const Known& each : kKnown)
    if (each.word == word && each.reason != Reason::kOther) return each.reason;
  return reason_of_number(status);
}

std::vector<Cause> causes_of(const Json& details, const Tame& tame) {
  std::vector<Cause> causes;
  const Json* all = base::array_at(details, "causes");
  for (std::size_t i = 0; all && i < std::min(all->size(), kCausesMax); ++i)
    causes.push_back({tame(base::text_at((*all)[i], "reason").value_or("")),
                      tame(base::text_at((*all)[i], "field").value_or("")),
                      tame(base::text_at((*all)[i], "message").value_or(""))});
  return causes;
}

// The server's own words, and those of its causes that it did not weave in.
std::string words_of(const std::string& message, const std::vector<Cause>& causes) {
  std::string words = message;
  for (std::size_t i = 0; i < std::min(causes.size(), kCausesShown); ++i)
    if (!causes[i].message.empty() && words.find(causes[i].message) == std::string::npos)
      words += (words.empty() ? "" : "; ") + causes[i].message;
  return words;
}

std::optional<base::Milliseconds> wait_of(std::int64_t seconds) {
  return base::Seconds(std::clamp<std::int64_t>(seconds, 0, kRetryAfterMax.count()));
}

Refusal read_status(std::string_view what, int number, const Json& status, const Tame& tame) {
  Refusal refusal{{ErrorCode::kUnavailable, {}}};
  refusal.status = number;
  refusal.reason = reason_of(base::text_at(status, "reason").value_or(""), number);
  if (const Json* details = base::object_at(status, "details")) {
    refusal.causes = causes_of(*details, tame);
    if (const auto seconds = base::integer_at(*details, "retryAfterSeconds");
        seconds && *seconds > 0)
      refusal.retry_after = wait_of(*seconds);
  }
  const std::string message = tame(base::text_at(status, "message").value_or(""));
  refusal.code = known(refusal.reason).code;
  refusal.message = std::string(what) + ": the API server answered " + std::to_string(number);
  if (refusal.reason != Reason::kOther)
    refusal.message += " " + std::string(to_word(refusal.reason));
  if (const std::string words = words_of(message, refusal.causes); !words.empty())
    refusal.message += ": " + words;
  return refusal;
}

}  // namespace

std::string_view to_word(Reason reason) { return known(reason).word; }

Refusal refusal_of(std::string_view what, const net::Response& response, const Tame& tame) {
  const auto body = base::parse_json(response.body);
  const bool is_status = body && base::text_at(*body, "kind") == "Status";
  // A 404 that is no Status is some other web server's, or a proxy's: it says nothing of an object.
  if (!is_status && response.status == 404) {
    Refusal foreign{base::error(ErrorCode::kUnavailable, what,
                                ": a 404 that no Kubernetes API server wrote (check the server's "
                                "URL, and that the resource's definition is installed)")};
    foreign.status = response.status;
    return foreign;
  }
  Refusal refusal = read_status(what, response.status, is_status ? *body : Json::object(), tame);
  const auto header = response.headers.find("Retry-After");
  if (const auto seconds = header ? base::parse_integer(base::trim(*header)) : std::nullopt)
    refusal.retry_after = wait_of(*seconds);
  return refusal;
}

Refusal refusal_of_status(std::string_view what, const Json& status, const Tame& tame) {
  return read_status(what, static_cast<int>(base::integer_at(status, "code").value_or(500)), status,
                     tame);
}

Refusal refusal_of(std::string_view what, const net::Failure& failure) {
  Refusal refusal{net::error_of(what, failure)};
  refusal.reason = Reason::kNoAnswer;
  refusal.sent = failure.sent;
  return refusal;
}

Refusal refusal_of(const base::Error& error) {
  Refusal refusal{error};
  refusal.sent = false;
  return refusal;
}

}  // namespace kube
