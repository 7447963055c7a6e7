#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <tuple>
#include <variant>

#include "controller/attach/access.h"
#include "controller/attach/admission.h"
#include "controller/attach/expiring_map.h"
#include "libs/api/resource_store.h"
#include "libs/base/token_bucket.h"
#include "libs/envd/sandbox.h"
#include "libs/metrics/registry.h"
#include "libs/net/server/http_server.h"
#include "libs/wire/attach.h"
#include "libs/wire/issuing_time.h"

namespace controller {

// How long an attach token opens its executor.
inline constexpr base::Seconds kAttachTokenLife{900};
// Executors that nobody gets to are looked at so often.
inline constexpr base::Seconds kFailedToldAgain{5};
// What a door lets through: one token and the rest of a head, two names.
inline constexpr std::size_t kAttachHeadBytesMax = 2 * wire::kHarnessTokenBytesMax;
inline constexpr std::size_t kAttachBodyBytesMax = 4u << 10;

// What agentd asks, on behalf of a harness: which executor, where, and a token for it.
//
//   POST /v1/attach   Authorization: Bearer <the harness's token, for kAttachAudience; in a
//   cluster>
//   {"namespace": "team-a", "name": "box", "failed": {"uid", "epoch", "run"}}
//   where `failed`, if it is there, is the run that the way led into which did not work
//   200 {"namespace", "name", "uid", "epoch", "incarnation", "run", "sandboxID", "endpoint":
//   {"url",
//        "headers": {}}, "token", "expires"}
//   else {"reason": <NoEntry>, "message"}, with Retry-After where asking again will help
//
// Access is judged before existence, so that nobody learns the names of what they may not open.
// Every grant is logged, and every refusal as long as they are not a flood; nothing of a token is.
// Safe to ask from many threads.
class AttachService {
 public:
  // Where the executor of a Sandbox is reached, with the headers that every request there carries.
  using WayTo = std::function<base::Result<envd::Route>(const api::Sandbox&, std::stop_token)>;

  // Somebody was let into the present run, and did not get in. Not again for kFailedToldAgain.
  using WayFailed = std::function<void(const api::Sandbox&)>;

  struct Parts {
    api::ResourceStore& store;
    Access& access;
    const base::Clock& clock;
    metrics::Registry& registry;
  };
  AttachService(
      Parts parts, std::string fleet_key, WayTo way_to,
      WayFailed way_failed = [](const api::Sandbox&) {});

  // `stop` cuts whatever it has to ask elsewhere.
  net::ServedAnswer answer(const net::ServedRequest& request, const std::stop_token& stop = {});
  // The same at wire::kAttachPath, and nothing elsewhere; for a door.
  net::ServedHandler handler(std::stop_token stop);

 private:
  using Run = std::tuple<std::string, std::int64_t, std::int64_t>;  // UID, epoch, run.
  struct Question {
    api::Key sandbox;
    std::optional<Run> failed;
  };
  struct Attached {
    const api::Sandbox& sandbox;
    std::string subject;
    envd::Route way;
  };
  struct Outcome {
    std::string caller;
    api::Key sandbox;
    std::variant<base::Json, Refused> reply;
  };

  static base::Result<Question> question_in(const std::string& body);
  static Run run_of(const api::Sandbox& sandbox);
  Outcome attend(const net::ServedRequest& request, const std::stop_token& stop);
  void note_failed(const api::Sandbox& sandbox);
  Refused wake(const api::Sandbox& sandbox, Refused meanwhile);
  base::Result<envd::Route> way_to(const api::Sandbox& sandbox, const std::stop_token& stop);
  base::Json reply_of(const Attached& attached) const;
  void note(const net::ServedRequest& request, const Outcome& outcome);

  const Parts parts_;
  const std::string fleet_key_;
  const WayTo way_to_;
  const WayFailed way_failed_;
  const wire::IssuingTime issuing_;
  std::mutex mutex_;
  ExpiringMap<Run, envd::Route> ways_;
  ExpiringMap<Run, std::monostate> failed_told_;
  base::TokenBucket refusals_told_;
  std::int64_t refusals_untold_ = 0;  // Since the last that was.
};

}  // namespace controller
