#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "libs/aio/task.h"
#include "libs/base/clock.h"
#include "libs/wire/attach.h"
#include "libs/wire/frames/message.h"

// The ways into sandboxes, as the attach service gives them out (docs/design/attach.md).
namespace agentd {

// Into one run of a sandbox.
struct Way {
  std::string uid;
  std::int64_t epoch = 0, incarnation = 0, run = 0;
  // The executor's port, through the provider's router: "https://24984-id.e2b.app" or
  // "http://127.0.0.1:3000/some/prefix".
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers = {};  // Secret, as the token is.
  std::string token;                                              // sf1.CLAIMS.SIGNATURE
  base::WallTime expires = {};                                    // The token.
};

// Which run it leads into.
struct RunOfWay {
  std::string uid;
  std::int64_t epoch = 0, run = 0;
  auto operator<=>(const RunOfWay&) const = default;
};
inline RunOfWay run_of(const Way& way) { return {way.uid, way.epoch, way.run}; }

struct NoWay {
  wire::NoEntry why = wire::NoEntry::kUnavailable;
  std::string message;  // For people; never a secret.
  std::optional<base::Milliseconds> retry_after = std::nullopt;
};
using Answer = std::variant<Way, NoWay>;

class WaysIn {
 public:
  virtual ~WaysIn() = default;
  // Within a bounded time. `token` is the harness's own, for the service to judge; none where
  // whoever may reach agentd may attach. It wakes a sandbox that idles, where the sandbox's owner
  // wants that, so it is asked for those only who have something to do there. `failed`: where the
  // way led that it gave last, if nobody was met there, for the controller to see to it.
  virtual aio::Task<Answer> ask(wire::SandboxName sandbox, std::optional<std::string> token,
                                std::optional<RunOfWay> failed) = 0;
};

}  // namespace agentd
