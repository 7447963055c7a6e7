#include "local_e2b/router/router.h"

#include "libs/aio/loop.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"

namespace local_e2b {

constexpr std::size_t kPathBytesMax = 1024;  // Of a path in the log of requests.

using Found = std::variant<Sandbox, aio::HttpReply>;

aio::Task<> Router::handle(std::shared_ptr<aio::HttpExchange> exchange) {
  const auto found = find_destination(exchange->head());
  if (const auto* why = std::get_if<std::string>(&found)) {
    (void)co_await exchange->reply(bad_destination(*why));
    co_return;
  }
  const Destination to = std::get<Destination>(found);
  const auto began = clock_.now();
  const Sandbox* known = fleet_.find(to.sandbox_id);
  Remembered request{.team = known ? known->team : "",
                     .method = exchange->head().method,
                     .path = std::string(base::cut(exchange->head().path(), kPathBytesMax)),
                     .sandbox_id = to.sandbox_id};
  const Misfortune fault = faults_.draw("data");
  if (!fault.none())
    base::log::info(
        "fault",
        {{"operation", "data"}, {"path", exchange->head().path()}, {"what", to_text(fault)}});
  if (fault.delay.count() > 0) co_await aio::sleep_for(fault.delay);
  if (fault.lost_reply) exchange->lose_reply();
  co_await route(exchange, to);
  request.fault = to_text(fault);
  request.at = clock_.wall();
  request.took = clock_.now() - began;
  if (known) requests_.add(std::move(request));
}

aio::Task<> Router::route(std::shared_ptr<aio::HttpExchange> exchange, Destination to) {
  Found found = co_await find_running(to, exchange->head());
  if (auto* refusal = std::get_if<aio::HttpReply>(&found)) {
    (void)co_await exchange->reply(std::move(*refusal));
    co_return;
  }
  if (!connections_.add(to.sandbox_id, exchange)) {
    (void)co_await exchange->reply(refused(to, 429, "too many connections to the sandbox"));
    co_return;
  }
  co_await carry(exchange, std::get<Sandbox>(std::move(found)), to);
  connections_.remove(to.sandbox_id, *exchange, to.own_host);
}

aio::Task<Found> Router::find_running(Destination to, aio::HttpHead head) {
  const Sandbox* sandbox = fleet_.find(to.sandbox_id);
  if (!sandbox) co_return not_running(to);
  if (!may_pass(*sandbox, to, head))
    co_return refused(to, 403, "the traffic access token is missing or wrong");
  if (to.port == kEnvdPort && is_internal(head.path())) co_return refused(to, 404, "not found");
  switch (sandbox->phase) {
    case Phase::kRunning:
      co_return *sandbox;
    case Phase::kPausing:
      co_return refused(to, 409, "the sandbox is being paused; retry");
    case Phase::kPaused:
    case Phase::kResuming:
      break;
    default:
      co_return not_running(to);
  }
  if (!sandbox->auto_resume) co_return not_running(to);
  if (!may_wake(*sandbox, to, head))
    co_return refused(to, 403, "the sandbox is paused, and waking it needs its token");
  const auto woken = co_await fleet_.wake(to.sandbox_id);
  if (!woken) co_return refused(to, woken.error().status, woken.error().message);
  sandbox = fleet_.find(to.sandbox_id);
  if (!sandbox || sandbox->phase != Phase::kRunning) co_return not_running(to);
  co_return *sandbox;
}

aio::Task<> Router::carry(std::shared_ptr<aio::HttpExchange> exchange, Sandbox sandbox,
                          Destination to) {
  auto upstream = co_await host_.dial(*sandbox.box, to.port);
  if (!upstream) {
    (void)co_await exchange->reply(port_closed(to));
    co_return;
  }
  const auto forwarded = co_await exchange->forward(*upstream);
  if (forwarded || forwarded.error().code == base::ErrorCode::kCancelled) co_return;
  (void)co_await exchange->reply(port_closed(to));
}

}  // namespace local_e2b
