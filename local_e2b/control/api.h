#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/aio/http_server.h"
#include "libs/base/clock.h"
#include "local_e2b/control/describe.h"
#include "local_e2b/control/fleet.h"
#include "local_e2b/control/idempotency.h"
#include "local_e2b/control/request_log.h"
#include "local_e2b/control/teams.h"
#include "local_e2b/faults/faults.h"

namespace local_e2b {

struct ApiSettings {
  std::int64_t run_seconds_max = 86'400;
  std::string admin_token;  // Empty: the fault switch is off.
  // What this machine keeps the server from doing: operation and reason.
  std::vector<std::pair<std::string, std::string>> cannot = {};
  std::size_t body_bytes_max = 1u << 20;
  base::Milliseconds body_time{10'000};
};

// The control plane: one table of method and path, one function for each entry.
class Api {
 public:
  Api(ApiSettings settings, Fleet& fleet, const KeyRecords& keys, const Teams& teams,
      Faults& faults, RequestLogs& requests, const base::Clock& clock);

  // Before the first request, when the fleet has been adopted: what is known of the requests with
  // keys that the server before this one was sent. A sandbox that is there shows what came of the
  // request that made it.
  void take_over_keys();
  aio::Task<> handle(std::shared_ptr<aio::HttpExchange> exchange);

 private:
  // One request on its way through a handler.
  struct Call {
    aio::HttpHead head;
    std::string team;
    std::string id;  // Of the path, when it has one.
    base::Json body;
  };
  using Handler = aio::Task<aio::HttpReply> (Api::*)(Call);
  struct Route {
    const char* method;
    const char* path;       // {id} stands for a sandbox id.
    const char* operation;  // For faults; empty when it has none.
    Handler handler;
  };
  struct Match {
    const Route* route = nullptr;
    std::string id;
    bool path_known = false;
  };
  static const std::vector<Route>& routes();
  static Match match(const std::string& method, const std::string& path);

  Outcome<std::string> authenticate(const aio::HttpHead& head, const Route& route) const;
  aio::Task<Outcome<base::Json>> read_body(aio::HttpExchange& exchange) const;
  aio::Task<Outcome<Call>> admit(aio::HttpExchange& exchange, const Match& match) const;
  aio::Task<> perform(std::shared_ptr<aio::HttpExchange> exchange, const Route& route, Call call);
  void remember(const Call& call, const Misfortune& misfortune, base::Moment began,
                const aio::HttpReply& reply);

  aio::Task<aio::HttpReply> health(Call call);
  aio::Task<aio::HttpReply> create_v1(Call call);
  aio::Task<aio::HttpReply> create_v2(Call call);
  aio::Task<aio::HttpReply> create(Call call, Version version, std::string key,
                                   std::string fingerprint);
  aio::Task<aio::HttpReply> list_v1(Call call);
  aio::Task<aio::HttpReply> list_v2(Call call);
  aio::Task<aio::HttpReply> get(Call call);
  aio::Task<aio::HttpReply> kill(Call call);
  aio::Task<aio::HttpReply> pause(Call call);
  aio::Task<aio::HttpReply> connect_v1(Call call);
  aio::Task<aio::HttpReply> connect_v2(Call call);
  aio::Task<aio::HttpReply> connect(Call call, Version version);
  aio::Task<aio::HttpReply> resume(Call call);
  aio::Task<aio::HttpReply> timeout(Call call);
  aio::Task<aio::HttpReply> refresh(Call call);
  aio::Task<aio::HttpReply> show_requests(Call call);
  aio::Task<aio::HttpReply> show_faults(Call call);
  aio::Task<aio::HttpReply> set_faults(Call call);

  const ApiSettings settings_;
  Fleet& fleet_;
  const Teams& teams_;
  Faults& faults_;
  RequestLogs& requests_;
  const base::Clock& clock_;
  const MachineSize machine_;
  Idempotency idempotency_;
};

}  // namespace local_e2b
