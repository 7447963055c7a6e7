#include "controller/attach/reviewed_access.h"

#include "libs/base/crypto.h"
#include "libs/wire/attach.h"

namespace controller {

using base::ErrorCode;

ReviewedAccess::ReviewedAccess(Reviewer& reviewer, const base::Clock& clock,
                               AccessSettings settings)
    : reviewer_(reviewer),
      clock_(clock),
      settings_(settings),
      decisions_(settings.remembered_max),
      each_(settings.each, settings.clients_max),
      all_(settings.all, clock.now()) {}

base::Result<std::string> ReviewedAccess::admit(const Asker& asker, const api::Key& sandbox,
                                                std::stop_token stop) {
  const std::string& token = asker.token;
  if (token.empty())
    return base::error(ErrorCode::kDenied, "no token: send it as Authorization: Bearer");
  if (token.size() > wire::kHarnessTokenBytesMax)
    return base::error(ErrorCode::kDenied, "the token is larger than ",
                       std::to_string(wire::kHarnessTokenBytesMax), " bytes");
  const std::pair<Digest, api::Key> question{base::sha256(token), sandbox};
  {
    std::lock_guard lock(mutex_);
    if (auto known = decisions_.find(question, clock_.now())) return *std::move(known);
    if (auto refusal = held_back(asker.client)) return *std::move(refusal);
  }
  Decision decision = ask(token, sandbox, stop);
  if (decision || decision.error().code == ErrorCode::kDenied) {
    const auto holds = decision ? settings_.remembered : settings_.refusal_remembered;
    std::lock_guard lock(mutex_);
    decisions_.put(question, decision, clock_.now() + holds);
  }
  return decision;
}

std::optional<base::Error> ReviewedAccess::held_back(const std::string& client) {
  const auto now = clock_.now();
  const bool one = each_.take(client, now);
  if (one && all_.take(now)) return std::nullopt;
  base::Error refusal{ErrorCode::kRateLimited,
                      one ? "too many questions at once" : "too many questions from " + client};
  refusal.retry_after = one ? all_.wait(now) : each_.wait(client, now);
  return refusal;
}

ReviewedAccess::Decision ReviewedAccess::ask(const std::string& token, const api::Key& sandbox,
                                             std::stop_token stop) {
  TRY(Caller caller, reviewer_.identify(token, stop));
  CHECK_OK(reviewer_.allow(caller, sandbox, stop));
  return std::move(caller.name);
}

}  // namespace controller
