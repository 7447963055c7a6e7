#include "executor/envd/metrics.h"
#include "executor/envd/rest.h"
#include "executor/envd/settings.h"

namespace executor {
namespace {

constexpr std::size_t kInitBytesMax = 1u << 20;

aio::HttpReply no_content() { return {204, {{"X-Envd-Version", std::string(kEnvdVersion)}}, ""}; }

}  // namespace

aio::Task<> get_health(std::shared_ptr<Daemon>, Exchange exchange) {
  static_cast<void>(co_await exchange->reply(no_content()));
}

aio::Task<> post_init(std::shared_ptr<Daemon> daemon, Exchange exchange) {
  const auto body = co_await exchange->read_all(kInitBytesMax);
  if (!body) {
    co_await reply_error(exchange, 400, body.error().message);
    co_return;
  }
  const auto json = base::parse_json(body->empty() ? "{}" : *body);
  if (!json) {
    co_await reply_error(exchange, 400, "the body is not JSON");
    co_return;
  }
  auto settings = apply_init(daemon->settings, *json);
  if (!settings) {
    const bool denied = settings.error().code == base::ErrorCode::kDenied;
    co_await reply_error(exchange, denied ? 401 : 400, settings.error().message);
    co_return;
  }
  daemon->settings = *std::move(settings);
  if (daemon->remember) daemon->remember(daemon->settings);
  static_cast<void>(co_await exchange->reply(no_content()));
}

aio::Task<> get_envs(std::shared_ptr<Daemon> daemon, Exchange exchange) {
  co_await reply_json(exchange, 200, base::Json(daemon->settings.env));
}

aio::Task<> get_metrics(std::shared_ptr<Daemon>, Exchange exchange) {
  co_await reply_json(exchange, 200, read_metrics());
}

}  // namespace executor
