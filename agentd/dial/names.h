#pragma once

#include <functional>
#include <string>
#include <vector>

#include "libs/aio/background.h"
#include "libs/aio/loop.h"
#include "libs/aio/shared.h"
#include "libs/base/result.h"

namespace agentd {

using Addresses = std::vector<std::string>;

// The first few addresses of a host, by the system's own means. Blocks, for as long as those take.
base::Result<Addresses> look_up(const std::string& host);

// Finds hosts. Those who ask for the same one at the same time share one look-up (aio::Shared): a
// name server that does not answer holds up so many threads, and nobody for longer than he waits.
class Names {
 public:
  static constexpr std::size_t kLookUpsMax = 64;  // Under way at once.
  using LookUp = std::function<base::Result<Addresses>(const std::string& host)>;

  // `background` outlives it, and it those who ask.
  Names(aio::Executor executor, aio::Background& background, LookUp how = look_up);

  // kUnavailable: not known, not in time, or too many are looked up just now.
  aio::Task<base::Result<Addresses>> find(std::string host, base::Milliseconds within);

 private:
  aio::Shared<std::string, base::Result<Addresses>> under_way_;
};

}  // namespace agentd
