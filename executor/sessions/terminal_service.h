#pragma once

#include <memory>
#include <optional>

#include "executor/confine/permission.h"
#include "executor/sessions/call.h"
#include "executor/subprocess/subprocesses.h"
#include "libs/aio/background.h"
#include "libs/aio/task.h"

namespace executor {

// The operations of docs/protocol.md on processes that have a terminal, which only those have. All
// else about them is served as of any process.
class TerminalService {
 public:
  TerminalService(Subprocesses& processes, aio::Background& background)
      : processes_(processes), background_(background) {}

  // Nothing when it is no operation on terminals; else what serves it. `permission`: the caller's.
  std::optional<aio::Task<>> serve(const std::shared_ptr<Call>& call, Permission permission);

 private:
  Subprocesses& processes_;
  aio::Background& background_;
};

}  // namespace executor
