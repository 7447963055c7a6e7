#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "executor/sessions/call.h"
#include "libs/aio/task.h"
#include "libs/wire/frames/fields.h"

namespace executor {

inline aio::Task<> refuse(std::shared_ptr<Call> call, std::string why) {
  call->fail(wire::failure(wire::FailureCode::kInvalid, why));
  co_return;
}

// The coroutine `run(site, arguments)` of a service, where the request of `site.call` is one for
// these arguments; `task` stays as it is where it is for something else.
template <typename Args, typename Site>
void try_to_serve(Site& site, std::optional<aio::Task<>>& task) {
  if (task || site.call->request().op != Args::kOp) return;
  auto args = wire::from_json<Args>(site.call->request().args);
  if (args) {
    task = run(std::move(site), *std::move(args));
  } else {
    task = refuse(site.call, args.error().message);
  }
}

// The one of `Args` that the request of `site.call` is for; nothing where it is for none of them.
template <typename... Args, typename Site>
std::optional<aio::Task<>> serve_one_of(Site site) {
  std::optional<aio::Task<>> task;
  (try_to_serve<Args>(site, task), ...);
  return task;
}

}  // namespace executor
