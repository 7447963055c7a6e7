#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "controller/prepare/prepare.h"
#include "libs/api/provider.h"
#include "libs/base/clock.h"
#include "libs/e2b/cloud.h"
#include "libs/net/transport.h"

namespace controller {

// The program's HTTP clients: one for each set of authorities that a provider's API is checked
// by, one for the data planes.
class Transports {
 public:
  using ApiKey = std::function<base::Result<std::string>(const api::SandboxProvider&)>;
  Transports();
  // `api_key` is asked anew for each request.
  std::shared_ptr<e2b::Cloud> connect(const api::SandboxProvider& provider,
                                      const base::Clock& clock, const ApiKey& api_key);
  net::Transport& inside() { return *inside_; }

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<net::Transport>> by_authorities_;
  const std::unique_ptr<net::Transport> inside_;
};

// The executor at `path`, or beside this program when that is empty; without one, only templates
// that have it baked in can be prepared.
base::Result<ExecutorFile> read_executor(const std::string& path);

}  // namespace controller
