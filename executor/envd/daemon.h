#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "executor/envd/settings.h"
#include "executor/files/watch.h"
#include "executor/process/processes.h"
#include "executor/users/users.h"
#include "libs/aio/background.h"
#include "libs/aio/http_server.h"
#include "libs/aio/loop.h"
#include "libs/base/result.h"

namespace executor {

// What every request handler of the daemon works with: one loop's state, no lock.
struct Daemon {
  static constexpr std::size_t kWatchersMax = 256;

  Daemon(aio::Executor executor, Users users, std::optional<Groups> groups)
      : executor(executor),
        users(std::move(users)),
        processes(executor, std::move(groups)),
        watches(executor) {}

  aio::Executor executor;
  Users users;
  EnvdSettings settings;
  std::function<void(const EnvdSettings&)> remember = {};  // Called when the settings changed.
  std::optional<std::size_t> command_descriptors = {};     // Soft limit of commands; else our own.
  Processes processes;
  std::map<std::string, std::shared_ptr<Watch>> watchers;  // Those that are polled.
  aio::TaskGroup watches;
  aio::Background background{4};

  // Who a request acts as; kDenied when there is no such user.
  base::Result<User> user_called(const std::optional<std::string>& name) const {
    if (name && !name->empty()) return users.find(*name);
    return users.find(settings.default_user.value_or(users.usual()));
  }
};

}  // namespace executor
