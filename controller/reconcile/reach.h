#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "libs/api/provider.h"
#include "libs/base/result.h"
#include "libs/e2b/cloud.h"
#include "libs/wire/admin.h"

namespace controller {

// One E2B sandbox to reach into, and whose executor is expected there.
struct Target {
  api::ProviderSpec provider;
  e2b::Handle handle;
  std::string uid;
  std::int64_t epoch = 0;
  std::string provider_name = {};
  bool was_prepared = false;  // An executor of ours was at work there, before this process perhaps.
};

// What the controller does inside a sandbox. kDenied: an executor answers and refuses our token;
// kNotFound: the sandbox runs, and nobody listens where an executor would; kConflict: our way in is
// an old one; kUnavailable: nobody answers.
class Reach {
 public:
  // Hears the name of each step as it begins.
  using OnStep = std::function<void(std::string_view step)>;

  virtual ~Reach() = default;
  // Until the executor answers; each step repeatable, and none without a limit in time. `replace`:
  // whatever executor runs is ended.
  virtual base::Result<wire::Health> prepare(const Target& target, bool replace,
                                             const OnStep& on_step, std::stop_token stop) = 0;
  virtual base::Result<wire::Health> health(const Target& target, std::stop_token stop) = 0;
  virtual base::Result<wire::Activity> activity(const Target& target, std::stop_token stop) = 0;
  virtual base::Result<wire::Health> quiesce(const Target& target, const wire::Quiesce& quiesce,
                                             std::stop_token stop) = 0;
  virtual base::Result<wire::Health> resumed(const Target& target, const wire::Resumed& resumed,
                                             std::stop_token stop) = 0;
};

}  // namespace controller
