#pragma once

#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "controller/attach/access.h"
#include "controller/attach/expiring_map.h"
#include "controller/attach/reviewer.h"
#include "libs/base/clock.h"
#include "libs/base/token_bucket.h"

namespace controller {

struct AccessSettings {
  // How long a decision holds; no longer, so that a right that is taken away is soon gone.
  base::Milliseconds remembered{10'000}, refusal_remembered{3'000};
  std::size_t remembered_max = 8'192;
  // Questions to the API server, for one client address and for all of them.
  base::Rate each{200, base::Milliseconds(20)};
  base::Rate all{400, base::Milliseconds(5)};
  std::size_t clients_max = 4'096;
};

// Who gets in by the API server's word.
class ReviewedAccess final : public Access {
 public:
  ReviewedAccess(Reviewer& reviewer, const base::Clock& clock, AccessSettings settings = {});

  base::Result<std::string> admit(const Asker& asker, const api::Key& sandbox,
                                  std::stop_token stop) override;

 private:
  using Digest = std::string;                  // Of a token, which is never kept.
  using Decision = base::Result<std::string>;  // The name.

  std::optional<base::Error> held_back(const std::string& client);
  Decision ask(const std::string& token, const api::Key& sandbox, std::stop_token stop);

  Reviewer& reviewer_;
  const base::Clock& clock_;
  const AccessSettings settings_;
  std::mutex mutex_;
  ExpiringMap<std::pair<Digest, api::Key>, Decision> decisions_;
  base::TokenBuckets each_;
  base::TokenBucket all_;
};

}  // namespace controller
