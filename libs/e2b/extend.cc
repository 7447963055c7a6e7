#include <algorithm>

#include "libs/e2b/client_api.h"

namespace e2b {

using base::Done;
using base::error;
using base::ErrorCode;
using base::Result;
using base::Seconds;

// One flow serves the blocking call and the one that calls back.

void Client::Api::ask_for(const Ask& ask, const Call& call, std::string_view what,
                          const Finish& finish, std::function<void(net::Response)> then) const {
  auto made = request(call);
  if (!made) return finish(made.error());
  ask(*std::move(made), [what = std::string(what), finish, then](net::Reply reply) {
    if (!reply) return finish(net::error_of(what, reply.error()));
    then(*std::move(reply));
  });
}

void Client::Api::refresh(std::shared_ptr<Api> api, const Ask& ask, const std::string& id,
                          Seconds timeout, const Finish& finish,
                          std::function<void(base::Error)> lacking) {
  const std::string what = "extend " + id;
  api->ask_for(ask,
               {.method = "POST",
                .path = sandbox_path(id, "/refreshes"),
                .body = seconds_body("duration", timeout)},
               what, finish, [=](net::Response response) {
                 if (is_success(response.status)) {
                   api->refreshes.worked();
                   return finish(Done{});
                 }
                 const base::Error refusal = api->refusal_or_foreign(what, response);
                 if (!api->refreshes.lacking(response)) return finish(refusal);
                 lacking(refusal);
               });
}

// By refreshes where it can be, which never shortens by itself.
void Client::Api::extend(std::shared_ptr<Api> api, Ask ask, std::string id, Seconds timeout,
                         Finish finish) {
  if (!api->refreshes.worth_trying() || timeout > kRefreshMax)
    return lengthen(api, std::move(ask), id, timeout, finish);
  refresh(api, ask, id, timeout, finish, [=](const base::Error&) {
    lengthen(api, ask, id, timeout, [=](Result<Done> result) {
      if (result) api->refreshes.is_missing();
      finish(std::move(result));
    });
  });
}

// By setting the timeout, after a look that the lease is not longer already. Where the provider
// does not tell the lease's end, the timeout asked for is set.
void Client::Api::lengthen(std::shared_ptr<Api> api, Ask ask, std::string id, Seconds timeout,
                           Finish finish) {
  const std::string what = "extend " + id;
  api->ask_for(ask, {"GET", sandbox_path(id)}, what, finish, [=](net::Response response) {
    const auto enough = api->is_long_enough(what, response, timeout);
    if (!enough) return finish(enough.error());
    if (*enough) return finish(Done{});
    api->ask_for(ask,
                 {.method = "POST",
                  .path = sandbox_path(id, "/timeout"),
                  .body = seconds_body("timeout", timeout)},
                 what, finish, [=](net::Response response) {
                   if (is_success(response.status)) return finish(Done{});
                   finish(api->refusal_or_foreign(what, response));
                 });
  });
}

Result<bool> Client::Api::is_long_enough(std::string_view what, const net::Response& response,
                                         Seconds timeout) const {
  if (!is_success(response.status)) return refusal_or_foreign(what, response);
  const auto info = read_info_body(response.body);
  if (!info) return nonsense(what, info.error());
  if (info->state == State::kPaused) return error(ErrorCode::kNotFound, what, ": it is paused");
  const base::WallTime present = provider_time(response).value_or(clock.wall());
  return info->end_at && *info->end_at >= present + timeout;
}

Result<Done> Client::extend(const std::string& id, Seconds timeout, std::stop_token stop) {
  CHECK_OK(check_id(id));
  Result<Done> outcome = error(ErrorCode::kUnavailable, "extend ", id, ": never asked");
  Api::extend(api_, api_->blocking(stop), id, timeout,
              [&](Result<Done> result) { outcome = std::move(result); });
  return outcome;
}

void Client::start_extend(const std::string& id, Seconds timeout,
                          std::function<void(Result<Done>)> done) {
  if (auto checked = check_id(id); !checked) return done(checked);
  Api::extend(api_, api_->starting(), id, timeout, std::move(done));
}

void Client::start_refresh(const std::string& id, Seconds timeout,
                           std::function<void(Result<Done>)> done) {
  if (auto checked = check_id(id); !checked) return done(checked);
  Api::refresh(api_, api_->starting(), id, std::min(timeout, kRefreshMax), done,
               [done, id](const base::Error& refusal) {
                 done(error(ErrorCode::kUnavailable, "extend ", id,
                            ": the provider has no call that only lengthens: ", refusal.message));
               });
}

}  // namespace e2b
