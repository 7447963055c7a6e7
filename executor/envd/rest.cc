#include "executor/envd/rest.h"

#include <cerrno>

#include "executor/envd/signature.h"
#include "executor/files/path.h"
#include "libs/base/crypto.h"

namespace executor {
namespace {

aio::Task<> no_such_path(std::shared_ptr<Daemon>, Exchange exchange) {
  co_await reply_error(exchange, 404, "no such path: " + exchange->head().path());
}

aio::Task<> no_such_method(std::shared_ptr<Daemon>, Exchange exchange) {
  co_await reply_error(exchange, 405, "this path does not take " + exchange->head().method);
}

const struct {
  std::string_view method, path;
  RestHandler handler;
} kRoutes[] = {
    {"GET", "/health", get_health},
    {"POST", "/init", post_init},
    {"GET", "/envs", get_envs},
    {"GET", "/metrics", get_metrics},
    {"GET", "/files", get_files},
    {"POST", "/files", post_files},
    {"POST", "/files/compose", post_compose},
};

// Nothing: let in. Else why not.
std::optional<base::Error> refuse(const Daemon& daemon, const aio::HttpHead& head,
                                  std::string_view operation) {
  const auto& token = daemon.settings.access_token;
  if (!token) return std::nullopt;
  if (const auto shown = head.field("X-Access-Token")) {
    // A wrong token is refused even when the signature is right.
    if (base::equal_secrets(*shown, *token)) return std::nullopt;
    return base::error(base::ErrorCode::kDenied, "access token is wrong");
  }
  const SignedUrl url{head.query("path").value_or(""), std::string(operation),
                      head.query("username").value_or(""), head.query("signature_expiration")};
  const auto judged =
      check_signature(url, *token, head.query("signature"), base::SystemClock().wall());
  return judged ? std::nullopt : std::optional(judged.error());
}

}  // namespace

RestHandler find_rest_handler(std::string_view method, std::string_view path) {
  bool known = false;
  for (const auto& route : kRoutes) {
    if (route.path != path) continue;
    if (route.method == method) return route.handler;
    known = true;
  }
  return known ? no_such_method : no_such_path;
}

aio::Task<> reply_json(Exchange exchange, int status, base::Json body) {
  aio::HttpReply reply{status, {{"Content-Type", "application/json"}}, base::to_text(body)};
  // Whoever asked may have left meanwhile; there is nobody to tell.
  static_cast<void>(co_await exchange->reply(std::move(reply)));
}

aio::Task<> reply_error(Exchange exchange, int status, std::string message) {
  co_await reply_json(exchange, status, base::Json{{"code", status}, {"message", message}});
}

aio::Task<std::optional<FileAsk>> admit_file_request(std::shared_ptr<Daemon> daemon,
                                                     Exchange exchange,
                                                     std::string_view operation) {
  const aio::HttpHead& head = exchange->head();
  if (const auto why = refuse(*daemon, head, operation)) {
    co_await reply_error(exchange, 401, why->message);
    co_return std::nullopt;
  }
  auto user = daemon->user_called(head.query("username"));
  if (!user) {
    co_await reply_error(exchange, 401, user.error().message);
    co_return std::nullopt;
  }
  const auto given = head.query("path");
  auto path = resolve_path(given.value_or(""), *user, daemon->settings.default_workdir);
  if (!path) {
    co_await reply_error(exchange, 400, path.error().message);
    co_return std::nullopt;
  }
  co_return FileAsk{*std::move(user), *std::move(path), given && !given->empty()};
}

int rest_status(const FileError& error) {
  switch (error.error_number) {
    case ENOENT:
      return 404;
    case EISDIR:
    case EINVAL:
    case ENAMETOOLONG:
      return 400;
    case ENOSPC:
    case EDQUOT:
      return 507;
    default:
      return error.code == base::ErrorCode::kInvalid ? 400 : 500;
  }
}

}  // namespace executor
