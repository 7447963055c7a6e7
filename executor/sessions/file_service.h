#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "executor/confine/permission.h"
#include "executor/filesystem/filesystem.h"
#include "executor/sessions/call.h"
#include "libs/aio/task.h"

namespace executor {

// The operations on files of docs/protocol.md, each a coroutine that ends with the request's reply,
// its failure or its download's end.
class FileService {
 public:
  // `cwd`: of calls that name none.
  FileService(Filesystem& files, std::string cwd) : files_(files), cwd_(std::move(cwd)) {}

  // Nothing when it is no operation on files; else what serves it. `permission`: the caller's.
  std::optional<aio::Task<>> serve(const std::shared_ptr<Call>& call, Permission permission);

 private:
  Filesystem& files_;
  std::string cwd_;
};

}  // namespace executor
