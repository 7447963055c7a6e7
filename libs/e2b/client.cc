#include "libs/e2b/client.h"

#include <atomic>
#include <set>

#include "libs/base/strings.h"
#include "libs/e2b/wire.h"

namespace e2b {
namespace {

using base::Done;
using base::error;
using base::ErrorCode;
using base::Json;
using base::Milliseconds;
using base::Result;
using base::Seconds;

bool is_success(int status) { return status >= 200 && status < 300; }

base::Error nonsense(std::string_view what, const base::Error& why) {
  return error(ErrorCode::kUnavailable, what, ": ", why.message);
}

Result<Done> check_id(const std::string& id) {
  if (id.empty()) return error(ErrorCode::kInvalid, "a sandbox id is empty");
  return Done{};
}

std::string seconds_body(const char* key, Seconds seconds) {
  return base::to_text(Json{{key, seconds.count()}});
}

bool matches(const SandboxInfo& info, const Filter& filter) {
  for (const auto& [key, value] : filter.metadata) {
    const auto found = info.metadata.find(key);
    if (found == info.metadata.end() || found->second != value) return false;
  }
  return true;
}

// Which of two routes a provider has, learned by trying; an optional one that once worked is there.
class Route {
 public:
  bool worth_trying() const { return known_ != kMissing; }
  void worked() { known_ = kThere; }
  void is_missing() { known_ = kMissing; }
  // Whether this refusal sends the caller to the older route.
  bool lacking(const net::Reply& reply) const {
    return reply && known_ != kThere && lacks_route(read_refusal(*reply));
  }

 private:
  enum Known { kUnknown, kThere, kMissing };
  std::atomic<Known> known_ = kUnknown;
};

}  // namespace

// What the client shares with callbacks that outlive it.
class Client::Api {
 public:
  // How a request goes out: blocking or not, `done` hears the reply once.
  using Ask = std::function<void(net::Request, std::function<void(net::Reply)>)>;

  Api(net::Transport& transport, const base::Clock& clock, Settings settings)
      : transport(transport), clock(clock), settings(std::move(settings)) {
    this->settings.api_url = net::base_url(this->settings.api_url);
  }

  struct Call {
    const char* method;
    std::string path;
    std::string body = {};
    bool once = false;  // Leave on a connection of its own, so that its outcome is rarely in doubt.
  };

  Result<net::Request> request(const Call& call) const {
    TRY(const std::string key, settings.api_key());
    net::Request request{.method = call.method, .url = settings.api_url + call.path};
    request.headers.add("X-API-Key", std::string(base::trim(key)));
    request.headers.add("Accept", "application/json");
    if (!call.body.empty()) request.headers.add("Content-Type", "application/json");
    request.body = call.body;
    request.fresh_connection = call.once;
    return request;
  }

  net::Reply send(const Call& call, std::stop_token stop) const {
    auto made = request(call);
    if (!made) return net::Failure{made.error(), false};
    return transport.send(*made, call.once ? settings.long_timeout : settings.timeout, stop);
  }

  Ask blocking(std::stop_token stop) const {
    return [this, stop](net::Request request, std::function<void(net::Reply)> done) {
      done(transport.send(request, settings.timeout, stop));
    };
  }
  Ask starting() const {
    return [this](net::Request request, std::function<void(net::Reply)> done) {
      transport.start(std::move(request), settings.timeout, std::move(done));
    };
  }

  // The provider's answer as an error, without the key that it may have echoed.
  base::Error refusal(std::string_view what, const net::Response& response) const {
    return error_of(what, read_refusal(response), key());
  }
  std::string key() const {
    auto key = settings.api_key();
    return key ? std::string(base::trim(*key)) : "";
  }
  // A 404 counts as "no such sandbox" only when it looks like an API's answer, not a web server's.
  static bool says_absent(const net::Response& response) {
    return response.status == 404 && read_refusal(response).is_json;
  }
  base::Error foreign_404(std::string_view what) const {
    return error(ErrorCode::kUnavailable, what,
                 ": a 404 that no E2B API wrote (check the provider's API URL)");
  }
  base::Error refusal_or_foreign(std::string_view what, const net::Response& response) const {
    if (response.status == 404 && !says_absent(response)) return foreign_404(what);
    return refusal(what, response);
  }

  Result<Connected> connected(std::string_view what, const std::string& id,
                              const net::Response& response, std::stop_token stop);
  Result<Connected> resume(const std::string& id, Seconds timeout, std::stop_token stop);
  Result<std::optional<Handle>> handle(const std::string& id, std::stop_token stop);

  using Finish = std::function<void(Result<Done>)>;
  static void extend(std::shared_ptr<Api> api, Ask ask, std::string id, Seconds timeout,
                     Finish finish);
  static void lengthen(std::shared_ptr<Api> api, Ask ask, std::string id, Seconds timeout,
                       Finish finish);
  void ask_for(const Ask& ask, const Call& call, std::string_view what, const Finish& finish,
               std::function<void(net::Response)> then) const;
  Result<bool> is_long_enough(std::string_view what, const net::Response& response,
                              Seconds timeout) const;

  net::Transport& transport;
  const base::Clock& clock;
  Settings settings;
  Route create_v2, connect_v2, connect_v1, refreshes;
};

namespace {

std::string sandbox_path(const std::string& id, const char* rest = "") {
  return "/sandboxes/" + base::percent_encode(id) + rest;
}

}  // namespace

Client::Client(net::Transport& transport, const base::Clock& clock, Settings settings)
    : api_(std::make_shared<Api>(transport, clock, std::move(settings))) {}

Client::~Client() = default;

// --- Create.

Result<Handle, CreateFailure> Client::create(const NewSandbox& wanted, std::stop_token stop) {
  const std::string what = "create from template '" + wanted.template_id + "'";
  const auto post = [&](Version version) -> net::Reply {
    const bool v2 = version == Version::kV2;
    auto request = api_->request({.method = "POST",
                                  .path = v2 ? "/v2/sandboxes" : "/sandboxes",
                                  .body = create_body(wanted, version),
                                  .once = true});
    if (!request) return net::Failure{request.error(), false};
    if (v2 && !wanted.idempotency_key.empty())
      request->headers.add("Idempotency-Key", wanted.idempotency_key);
    return api_->transport.send(*request, api_->settings.long_timeout, stop);
  };

  net::Reply reply = post(api_->create_v2.worth_trying() ? Version::kV2 : Version::kV1);
  if (api_->create_v2.worth_trying() && api_->create_v2.lacking(reply)) {
    reply = post(Version::kV1);
    if (reply && !lacks_route(read_refusal(*reply))) api_->create_v2.is_missing();
  } else if (api_->create_v2.worth_trying() && reply && is_success(reply->status)) {
    api_->create_v2.worked();
  }

  using Kind = CreateFailure::Kind;
  if (!reply)
    return CreateFailure{net::error_of(what, reply.error()),
                         reply.error().sent ? Kind::kAmbiguous : Kind::kNotSent};
  if (!is_success(reply->status)) return create_failure_of(what, read_refusal(*reply), api_->key());
  auto handle = read_handle(reply->body);
  if (!handle) return CreateFailure{nonsense(what, handle.error()), Kind::kAmbiguous};
  return *std::move(handle);
}

// --- Look.

Result<Told<std::optional<SandboxInfo>>> Client::get(const std::string& id, std::stop_token stop) {
  CHECK_OK(check_id(id));
  const std::string what = "get " + id;
  const net::Reply reply = api_->send({"GET", sandbox_path(id)}, stop);
  if (!reply) return net::error_of(what, reply.error());
  Told<std::optional<SandboxInfo>> told{std::nullopt, provider_time(*reply)};
  if (Api::says_absent(*reply)) return told;
  if (!is_success(reply->status)) return api_->refusal_or_foreign(what, *reply);
  auto info = read_info_body(reply->body);
  if (!info) return nonsense(what, info.error());
  told.value = *std::move(info);
  return told;
}

Result<std::optional<Handle>> Client::Api::handle(const std::string& id, std::stop_token stop) {
  CHECK_OK(check_id(id));
  const std::string what = "get tokens of " + id;
  const net::Reply reply = send({"GET", sandbox_path(id)}, stop);
  if (!reply) return net::error_of(what, reply.error());
  if (!is_success(reply->status)) return refusal_or_foreign(what, *reply);
  auto handle = read_handle(reply->body);
  if (!handle) return nonsense(what, handle.error());
  if (!handle->envd_access_token) return std::optional<Handle>();
  return std::optional(*std::move(handle));
}

Result<std::optional<Handle>> Client::handle(const std::string& id, std::stop_token stop) {
  return api_->handle(id, stop);
}

namespace {

// Adds a page's items to what the list holds; a sandbox that moved between pages counts once.
Result<Done> add_page(std::string_view body, const Filter& filter,
                      std::map<std::string, SandboxInfo>& found) {
  const auto page = base::parse_json(body);
  if (!page || !page->is_array())
    return error(ErrorCode::kUnavailable, "the answer is not a JSON array");
  for (std::size_t i = 0; i < page->size(); ++i) {
    auto info = read_info((*page)[i]);
    if (!info)
      return error(ErrorCode::kUnavailable, "item ", std::to_string(i), ": ", info.error().message);
    if (matches(*info, filter)) found[info->id] = *info;
  }
  return Done{};
}

std::string list_path(const Filter& filter, const std::string& token) {
  std::string path = "/v2/sandboxes?state=running,paused&limit=" + std::to_string(kListPageSize);
  if (!filter.metadata.empty()) path += "&metadata=" + metadata_query(filter.metadata);
  if (!token.empty()) path += "&nextToken=" + base::percent_encode(token);
  return path;
}

}  // namespace

Result<Told<std::vector<SandboxInfo>>> Client::list(const Filter& filter, std::stop_token stop) {
  std::map<std::string, SandboxInfo> found;
  std::set<std::string> tokens;
  std::optional<base::WallTime> time;  // Of the first page: every fact is at least that new.
  std::string token;
  for (int page = 1; page <= kListPagesMax; ++page) {
    const std::string what = "list, page " + std::to_string(page);
    const net::Reply reply = api_->send({"GET", list_path(filter, token)}, stop);
    if (!reply) return net::error_of(what, reply.error());
    if (!is_success(reply->status)) return api_->refusal_or_foreign(what, *reply);
    if (auto added = add_page(reply->body, filter, found); !added)
      return nonsense(what, added.error());
    if (page == 1) time = provider_time(*reply);
    token = reply->headers.find("X-Next-Token").value_or("");
    if (token.empty()) {
      Told<std::vector<SandboxInfo>> told{{}, time};
      for (auto& [id, info] : found) told.value.push_back(std::move(info));
      return told;
    }
    if (!tokens.insert(token).second)
      return error(ErrorCode::kUnavailable, what, ": the provider repeats a page token");
  }
  return error(ErrorCode::kUnavailable, "list: more than ", std::to_string(kListPagesMax),
               " pages");
}

// --- End and pause.

Result<KillAnswer> Client::kill(const std::string& id, std::stop_token stop) {
  CHECK_OK(check_id(id));
  const std::string what = "kill " + id;
  const net::Reply reply = api_->send({"DELETE", sandbox_path(id)}, stop);
  if (!reply) return net::error_of(what, reply.error());
  if (is_success(reply->status)) return KillAnswer::kKilled;
  if (Api::says_absent(*reply)) return KillAnswer::kNotThere;
  return api_->refusal_or_foreign(what, *reply);
}

Result<PauseAnswer> Client::pause(const std::string& id, std::stop_token stop) {
  CHECK_OK(check_id(id));
  const std::string what = "pause " + id;
  const net::Reply reply = api_->send(
      {.method = "POST", .path = sandbox_path(id, "/pause"), .body = "{}", .once = true}, stop);
  if (!reply) return net::error_of(what, reply.error());
  if (is_success(reply->status)) return PauseAnswer::kPaused;
  if (reply->status == 409) return PauseAnswer::kAlreadyPaused;
  return api_->refusal_or_foreign(what, *reply);
}

// --- Connect.

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

// --- Extend: one flow, blocking or not.

void Client::Api::ask_for(const Ask& ask, const Call& call, std::string_view what,
                          const Finish& finish, std::function<void(net::Response)> then) const {
  auto made = request(call);
  if (!made) return finish(made.error());
  ask(*std::move(made), [what = std::string(what), finish, then](net::Reply reply) {
    if (!reply) return finish(net::error_of(what, reply.error()));
    then(*std::move(reply));
  });
}

// By refreshes where it can be, which never shortens by itself.
void Client::Api::extend(std::shared_ptr<Api> api, Ask ask, std::string id, Seconds timeout,
                         Finish finish) {
  if (!api->refreshes.worth_trying() || timeout > kRefreshMax)
    return lengthen(api, std::move(ask), id, timeout, finish);
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
                 if (!api->refreshes.lacking(response))
                   return finish(api->refusal_or_foreign(what, response));
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

}  // namespace e2b
