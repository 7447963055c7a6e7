#pragma once

#include <functional>
#include <memory>
#include <string>

#include "libs/base/clock.h"
#include "libs/e2b/cloud.h"
#include "libs/net/transport.h"

namespace e2b {

struct Settings {
  std::string api_url;  // "https://api.e2b.app"; a path in it is kept.
  // Asked anew for every request, so that a rotated key is used at once.
  std::function<base::Result<std::string>()> api_key;
  base::Milliseconds timeout{30'000};  // Of get, one page of list, kill, extend.
  // Of create, connect, pause: above the provider's own 80 s.
  base::Milliseconds long_timeout{100'000};
};

inline constexpr int kListPageSize = 100;
inline constexpr int kListPagesMax = 2'000;         // More is an error, not a shortened list.
inline constexpr base::Seconds kRefreshMax{3'600};  // The most one refresh may ask for.

// The control plane over HTTP. It speaks v2 and falls back to v1, and from refreshes to a timeout
// that never shortens, where a provider lacks the route; what it learned it remembers. Safe to call
// from many threads; callbacks of start_extend may outlive it.
class Client final : public Cloud {
 public:
  Client(net::Transport& transport, const base::Clock& clock, Settings settings);
  ~Client() override;

  base::Result<Handle, CreateFailure> create(const NewSandbox& wanted,
                                             std::stop_token stop) override;
  base::Result<Told<std::optional<SandboxInfo>>> get(const std::string& id,
                                                     std::stop_token stop) override;
  base::Result<std::optional<Handle>> handle(const std::string& id, std::stop_token stop) override;
  base::Result<Told<std::vector<SandboxInfo>>> list(const Filter& filter,
                                                    std::stop_token stop) override;
  base::Result<KillAnswer> kill(const std::string& id, std::stop_token stop) override;
  base::Result<PauseAnswer> pause(const std::string& id, std::stop_token stop) override;
  base::Result<Connected> connect(const std::string& id, base::Seconds timeout,
                                  std::stop_token stop) override;
  base::Result<base::Done> extend(const std::string& id, base::Seconds timeout,
                                  std::stop_token stop) override;
  void start_extend(const std::string& id, base::Seconds timeout,
                    std::function<void(base::Result<base::Done>)> done) override;
  void start_refresh(const std::string& id, base::Seconds timeout,
                     std::function<void(base::Result<base::Done>)> done) override;

 private:
  class Api;
  std::shared_ptr<Api> api_;
};

}  // namespace e2b
