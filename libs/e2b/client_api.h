#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "libs/base/json.h"
#include "libs/base/strings.h"
#include "libs/e2b/client.h"
#include "libs/e2b/wire.h"

// What client.cc, connect.cc and extend.cc share; nobody else includes it.
namespace e2b {

inline bool is_success(int status) { return status >= 200 && status < 300; }

inline base::Error nonsense(std::string_view what, const base::Error& why) {
  return base::error(base::ErrorCode::kUnavailable, what, ": ", why.message);
}

inline base::Result<base::Done> check_id(const std::string& id) {
  if (id.empty()) return base::error(base::ErrorCode::kInvalid, "a sandbox id is empty");
  return base::Done{};
}

inline std::string seconds_body(const char* key, base::Seconds seconds) {
  return base::to_text(base::Json{{key, seconds.count()}});
}

inline std::string sandbox_path(const std::string& id, const char* rest = "") {
  return "/sandboxes/" + base::percent_encode(id) + rest;
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

  base::Result<net::Request> request(const Call& call) const {
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
    return base::error(base::ErrorCode::kUnavailable, what,
                       ": a 404 that no E2B API wrote (check the provider's API URL)");
  }
  // A web server or proxy in front may answer anything with 200 and a page; an API has no body or
  // JSON to tell.
  static bool says_done(const net::Response& response) {
    return is_success(response.status) && !base::trim(response.body).starts_with('<');
  }
  base::Error refusal_or_foreign(std::string_view what, const net::Response& response) const {
    if (response.status == 404 && !says_absent(response)) return foreign_404(what);
    if (is_success(response.status))
      return base::error(base::ErrorCode::kUnavailable, what,
                         ": a page that no E2B API wrote (check the provider's API URL)");
    return refusal(what, response);
  }

  base::Result<Connected> connected(std::string_view what, const std::string& id,
                                    const net::Response& response, std::stop_token stop);
  base::Result<Connected> resume(const std::string& id, base::Seconds timeout,
                                 std::stop_token stop);
  base::Result<std::optional<Handle>> handle(const std::string& id, std::stop_token stop);

  using Finish = std::function<void(base::Result<base::Done>)>;
  static void extend(std::shared_ptr<Api> api, Ask ask, std::string id, base::Seconds timeout,
                     Finish finish);
  // `lacking` hears the refusal of a provider that has no refreshes.
  static void refresh(std::shared_ptr<Api> api, const Ask& ask, const std::string& id,
                      base::Seconds timeout, const Finish& finish,
                      std::function<void(base::Error)> lacking);
  static void lengthen(std::shared_ptr<Api> api, Ask ask, std::string id, base::Seconds timeout,
                       Finish finish);
  void ask_for(const Ask& ask, const Call& call, std::string_view what, const Finish& finish,
               std::function<void(net::Response)> then) const;
  base::Result<bool> is_long_enough(std::string_view what, const net::Response& response,
                                    base::Seconds timeout) const;

  net::Transport& transport;
  const base::Clock& clock;
  Settings settings;
  Route create_v2, connect_v2, connect_v1, refreshes;
};

}  // namespace e2b
