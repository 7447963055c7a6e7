#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "executor/archive/archives.h"
#include "executor/confine/permission.h"
#include "executor/filesystem/filesystem.h"
#include "executor/sessions/call.h"
#include "libs/aio/task.h"

namespace executor {

// The operations on archives of docs/protocol.md.
class ArchiveService {
 public:
  ArchiveService(aio::Executor executor, Filesystem& files, std::shared_ptr<Stagings> stagings,
                 std::string cwd)
      : files_(files), archives_(std::move(executor), std::move(stagings)), cwd_(std::move(cwd)) {}

  // Nothing when it is no operation on archives; else what serves it. `permission`: the caller's.
  std::optional<aio::Task<>> serve(const std::shared_ptr<Call>& call, Permission permission);

 private:
  Filesystem& files_;
  Archives archives_;
  std::string cwd_;
};

}  // namespace executor
