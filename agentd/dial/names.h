#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/aio/background.h"
#include "libs/aio/loop.h"
#include "libs/base/result.h"

namespace agentd {

using Addresses = std::vector<std::string>;

// The first few addresses of a host, by the system's own means. Blocks, for as long as those take.
base::Result<Addresses> look_up(const std::string& host);

// Finds hosts. Those who ask for the same one at the same time share one look-up, which goes on
// when they have left: a name server that does not answer holds up so many threads, and nobody for
// longer than he waits. Nothing is remembered beyond it.
class Names {
 public:
  static constexpr std::size_t kLookUpsMax = 64;  // Under way at once.
  using LookUp = std::function<base::Result<Addresses>(const std::string& host)>;

  // `background` outlives it, and it those who ask.
  Names(aio::Executor executor, aio::Background& background, LookUp how = look_up);

  // kUnavailable: not known, not in time, or too many are looked up just now.
  aio::Task<base::Result<Addresses>> find(std::string host, base::Milliseconds within);

 private:
  struct Question {
    explicit Question(aio::Executor executor) : answered(std::move(executor)) {}
    std::optional<base::Result<Addresses>> answer;
    aio::Condition answered;
  };
  aio::Task<> put(std::string host, std::shared_ptr<Question> question);
  static aio::Task<bool> until_answered(std::shared_ptr<Question> question);

  const aio::Executor executor_;
  aio::Background& background_;
  const LookUp look_up_;
  std::map<std::string, std::shared_ptr<Question>> questions_;
  aio::TaskGroup tasks_;  // Last: they use all of the above.
};

}  // namespace agentd
