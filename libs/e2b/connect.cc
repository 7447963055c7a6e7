#include "libs/e2b/client_api.h"

namespace e2b {

using base::error;
using base::ErrorCode;
using base::Result;
using base::Seconds;

// Reads a success; a provider that answers without a body is asked for the handle.
Result<Connected> Client::Api::connected(std::string_view what, const std::string& id,
                                         const net::Response& response, std::stop_token stop) {
  const bool resumed = response.status != 200;
  if (response.status == 204 || base::trim(response.body).empty()) {
    TRY(auto known, handle(id, stop));
    return Connected{known.value_or(Handle{.id = id}), resumed};
  }
  auto handle = read_handle(response.body);
  if (!handle) return nonsense(what, handle.error());
  return Connected{*std::move(handle), resumed};
}

// For providers from before connect: it refuses a running sandbox, which then only needs its lease.
Result<Connected> Client::Api::resume(const std::string& id, Seconds timeout,
                                      std::stop_token stop) {
  const std::string what = "resume " + id;
  const net::Reply reply = send({.method = "POST",
                                 .path = sandbox_path(id, "/resume"),
                                 .body = seconds_body("timeout", timeout),
                                 .once = true},
                                stop);
  if (!reply) return net::error_of(what, reply.error());
  if (is_success(reply->status)) {
    TRY(Connected made, connected(what, id, *reply, stop));
    made.resumed = true;
    return made;
  }
  if (reply->status != 409) return refusal_or_foreign(what, *reply);
  TRY(auto known, handle(id, stop));
  return Connected{known.value_or(Handle{.id = id}), false};
}

Result<Connected> Client::connect(const std::string& id, Seconds timeout, std::stop_token stop) {
  CHECK_OK(check_id(id));
  if (timeout < Seconds(1))
    return error(ErrorCode::kInvalid, "connect ", id, ": the timeout is under a second");
  const std::string what = "connect " + id;
  struct Way {
    const char* prefix;
    Route& route;
  };
  std::vector<Route*> lacking;
  for (const Way& way : {Way{"/v2", api_->connect_v2}, Way{"", api_->connect_v1}}) {
    if (!way.route.worth_trying()) continue;
    const net::Reply reply = api_->send({.method = "POST",
                                         .path = way.prefix + sandbox_path(id, "/connect"),
                                         .body = seconds_body("timeout", timeout),
                                         .once = true},
                                        stop);
    if (way.route.lacking(reply)) {
      lacking.push_back(&way.route);
      continue;
    }
    if (!reply) return net::error_of(what, reply.error());
    for (Route* route : lacking) route->is_missing();
    if (!is_success(reply->status)) return api_->refusal_or_foreign(what, *reply);
    way.route.worked();
    return api_->connected(what, id, *reply, stop);
  }

  auto resumed = api_->resume(id, timeout, stop);
  if (!resumed) return resumed;
  for (Route* route : lacking) route->is_missing();
  if (!resumed->resumed) CHECK_OK(extend(id, timeout, stop));
  return resumed;
}

}  // namespace e2b
