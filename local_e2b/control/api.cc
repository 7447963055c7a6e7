#include "local_e2b/control/api.h"

#include "libs/aio/loop.h"
#include "libs/base/crypto.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"
#include "local_e2b/control/listing.h"

namespace local_e2b {

using aio::HttpReply;
using aio::Task;
using base::Json;

Api::Api(ApiSettings settings, Fleet& fleet, const KeyRecords& keys, const Teams& teams,
         Faults& faults, RequestLogs& requests, const base::Clock& clock)
    : settings_(std::move(settings)),
      fleet_(fleet),
      teams_(teams),
      faults_(faults),
      requests_(requests),
      clock_(clock),
      machine_(machine_size()),
      idempotency_(keys, clock) {}

const std::vector<Api::Route>& Api::routes() {
  static const std::vector<Route> table{
      {"GET", "/health", "", &Api::health},
      {"POST", "/sandboxes", "create", &Api::create_v1},
      {"POST", "/v2/sandboxes", "create", &Api::create_v2},
      {"GET", "/sandboxes", "list", &Api::list_v1},
      {"GET", "/v2/sandboxes", "list", &Api::list_v2},
      {"GET", "/sandboxes/{id}", "get", &Api::get},
      {"DELETE", "/sandboxes/{id}", "kill", &Api::kill},
      {"POST", "/sandboxes/{id}/pause", "pause", &Api::pause},
      {"POST", "/sandboxes/{id}/connect", "connect", &Api::connect_v1},
      {"POST", "/v2/sandboxes/{id}/connect", "connect", &Api::connect_v2},
      {"POST", "/sandboxes/{id}/resume", "resume", &Api::resume},
      {"POST", "/sandboxes/{id}/timeout", "timeout", &Api::timeout},
      {"POST", "/sandboxes/{id}/refreshes", "refresh", &Api::refresh},
      {"GET", "/_local/requests", "", &Api::show_requests},
      {"GET", "/_local/faults", "", &Api::show_faults},
      {"PUT", "/_local/faults", "", &Api::set_faults},
  };
  return table;
}

Api::Match Api::match(const std::string& method, const std::string& path) {
  Match best;
  const auto asked = base::split(path, '/');
  for (const auto& route : routes()) {
    const auto wanted = base::split(route.path, '/');
    if (wanted.size() != asked.size()) continue;
    std::string id;
    bool same = true;
    for (std::size_t i = 0; i < wanted.size() && same; ++i) {
      if (wanted[i] == "{id}")
        id = asked[i];
      else
        same = wanted[i] == asked[i];
    }
    if (!same) continue;
    best.path_known = true;
    if (method != route.method) continue;
    best.route = &route;
    best.id = id;
    return best;
  }
  return best;
}

Outcome<std::string> Api::authenticate(const aio::HttpHead& head, const Route& route) const {
  if (std::string_view(route.path) == "/health") return std::string();
  if (std::string_view(route.path) == "/_local/faults") {
    if (settings_.admin_token.empty())
      return refuse(404, "faults are off: start the server with --admin-token-file");
    const auto token = head.field("X-Admin-Token").value_or("");
    if (!base::equal_secrets(token, settings_.admin_token))
      return refuse(401, "X-Admin-Token is missing or wrong");
    return std::string("admin");
  }
  const auto key = head.field("X-API-Key");
  if (!key) return refuse(401, "the X-API-Key header is missing");
  const auto team = teams_.team_of(*key);
  if (!team) return refuse(401, "the API key is not known");
  return *team;
}

// The body as JSON; an empty one counts as {}.
Task<Outcome<Json>> Api::read_body(aio::HttpExchange& exchange) const {
  const auto read =
      co_await aio::within(exchange.read_all(settings_.body_bytes_max), settings_.body_time);
  if (!read) co_return refuse(408, "the body did not arrive in time");
  const auto& text = *read;
  if (!text) co_return invalid(text.error().message);
  const std::string whole = *text;
  if (base::trim(whole).empty()) co_return Json::object();
  auto json = base::parse_json(whole);
  if (!json) co_return invalid("the body is not JSON: " + json.error().message);
  co_return *std::move(json);
}

Task<Outcome<Api::Call>> Api::admit(aio::HttpExchange& exchange, const Match& match) const {
  const auto& head = exchange.head();
  if (!match.route) {
    if (match.path_known) co_return refuse(405, "method not allowed: " + head.method);
    co_return refuse(404, "no such path: " + head.path());
  }
  Call call;
  call.head = head;
  CO_TRY(call.team, authenticate(head, *match.route));
  if (!match.id.empty()) {
    CO_TRY(call.id, parse_sandbox_id(match.id));
  }
  CO_TRY(call.body, co_await read_body(exchange));
  co_return call;
}

void Api::remember(const Call& call, const Misfortune& misfortune, base::Moment began,
                   const HttpReply& reply) {
  std::string id = call.id;
  if (id.empty() && reply.status == 201)
    if (const auto made = base::parse_json(reply.body))
      id = base::text_at(*made, "sandboxID").value_or("");
  requests_.control.add({clock_.wall(), call.team, call.head.method, call.head.path(),
                         to_text(misfortune), std::move(id), clock_.now() - began, reply.status});
}

Task<> Api::handle(std::shared_ptr<aio::HttpExchange> exchange) {
  const Match found = match(exchange->head().method, exchange->head().path());
  auto call = co_await admit(*exchange, found);
  if (!call) {
    (void)co_await exchange->reply(answer(call.error()));
    co_return;
  }
  co_await perform(exchange, *found.route, *std::move(call));
}

Task<> Api::perform(std::shared_ptr<aio::HttpExchange> exchange, const Route& route, Call call) {
  const auto began = clock_.now();
  const Misfortune fault = faults_.draw(route.operation);
  if (!fault.none())
    base::log::info(
        "fault",
        {{"operation", route.operation}, {"path", call.head.path()}, {"what", to_text(fault)}});
  if (fault.late_effect) exchange->abort();
  if (fault.delay.count() > 0) co_await aio::sleep_for(fault.delay);
  const Call asked = call;
  auto reply = co_await (this->*route.handler)(std::move(call));
  remember(asked, fault, began, reply);
  base::log::debug(
      "request",
      {{"method", asked.head.method}, {"path", asked.head.path()}, {"status", reply.status}});
  if (fault.late_effect) co_return;
  if (fault.lost_reply) {
    exchange->abort();
    co_return;
  }
  (void)co_await exchange->reply(std::move(reply));  // Whoever left does not want it.
}

// 204 as the service says it; a body only when there is something to tell.
Task<HttpReply> Api::health(Call) {
  if (settings_.cannot.empty()) co_return answer(204);
  Json cannot = Json::array();
  for (const auto& [operation, why] : settings_.cannot)
    cannot.push_back({{"operation", operation}, {"reason", why}});
  co_return answer(200, {{"cannot", cannot}});
}

// ---- create

namespace {

// What a request with a key is answered when it is not to be done.
struct WithoutDoingIt {
  using Answer = std::optional<HttpReply>;
  Answer operator()(Idempotency::Execute) const { return std::nullopt; }
  Answer operator()(HttpReply replay) const { return replay; }
  Answer operator()(Idempotency::Mismatch) const {
    return answer(refuse(409, "the Idempotency-Key came with another request before",
                         "idempotency_request_mismatch"));
  }
  Answer operator()(Idempotency::InProgress) const {
    return answer(refuse(409, "a request with this Idempotency-Key is in progress",
                         "idempotency_in_progress"));
  }
  Answer operator()(Idempotency::Unknown) const {
    return answer(refuse(422,
                         "the server ended while it did the request with this Idempotency-Key, "
                         "which is not done again; look for the sandbox by its metadata, then use "
                         "another key",
                         "idempotency_outcome_unknown"));
  }
  Answer operator()(Idempotency::Unwritten) const {
    return answer(refuse(503, "the result is unavailable; try again with this Idempotency-Key"));
  }
  Answer operator()(Idempotency::Full) const {
    return answer(refuse(503, "too many requests with Idempotency-Keys are in progress"));
  }
};

}  // namespace

void Api::take_over_keys() {
  idempotency_.take_over();
  for (const auto& each : fleet_.all())
    if (!each.idempotency_key.empty() && each.phase != Phase::kStarting)
      idempotency_.settle(each.team, each.idempotency_key, each.idempotency_fingerprint,
                          answer(201, describe_handle(each)));
}

Task<HttpReply> Api::create_v1(Call call) {
  co_return co_await create(std::move(call), Version::kV1, "", "");
}

Task<HttpReply> Api::create_v2(Call call) {
  const auto key = call.head.field("Idempotency-Key");
  if (!key) co_return co_await create(std::move(call), Version::kV2, "", "");
  if (!valid_idempotency_key(*key))
    co_return answer(invalid("Idempotency-Key must be 1 to 255 of a-z and 0-9"));
  const std::string team = call.team;
  const std::string fingerprint = base::to_hex(
      base::sha256(call.head.method + "\n" + call.head.target + "\n" + base::to_text(call.body)));
  auto decision = idempotency_.begin(team, *key, fingerprint);
  if (auto known = std::visit(WithoutDoingIt(), std::move(decision))) co_return *std::move(known);
  auto reply = co_await create(std::move(call), Version::kV2, *key, fingerprint);
  idempotency_.finish(team, *key, fingerprint, reply);
  co_return reply;
}

Task<HttpReply> Api::create(Call call, Version version, std::string key, std::string fingerprint) {
  auto request = parse_create(call.body, version, settings_.run_seconds_max);
  if (!request) co_return answer(request.error());
  request->idempotency_key = std::move(key);
  request->idempotency_fingerprint = std::move(fingerprint);
  const auto sandbox = co_await fleet_.create(call.team, *std::move(request));
  co_return sandbox ? answer(201, describe_handle(*sandbox)) : answer(sandbox.error());
}

// ---- look

Task<HttpReply> Api::get(Call call) {
  const auto sandbox = fleet_.get(call.team, call.id);
  co_return sandbox ? answer(200, describe_detail(*sandbox, machine_)) : answer(sandbox.error());
}

namespace {

HttpReply answer_page(const Page& page, const MachineSize& machine) {
  Json items = Json::array();
  for (const Sandbox* each : page.items) items.push_back(describe_listed(*each, machine));
  return answer(200, items);
}

}  // namespace

Task<HttpReply> Api::list_v1(Call call) {
  ListQuery query{.paused = false, .limit = SIZE_MAX};
  const auto metadata = parse_metadata_filter(call.head.query("metadata").value_or(""));
  if (!metadata) co_return answer(metadata.error());
  query.metadata = *metadata;
  co_return answer_page(list_page(fleet_.of_team(call.team), query), machine_);
}

Task<HttpReply> Api::list_v2(Call call) {
  const auto query = parse_list_query(call.head);
  if (!query) co_return answer(query.error());
  const Page page = list_page(fleet_.of_team(call.team), *query);
  auto reply = answer_page(page, machine_);
  if (page.next_token) reply.fields.emplace_back("X-Next-Token", *page.next_token);
  if (query->running) reply.fields.emplace_back("X-Total-Running", std::to_string(page.running));
  co_return reply;
}

// ---- change

Task<HttpReply> Api::kill(Call call) {
  const auto killed = co_await fleet_.kill(call.team, call.id);
  co_return killed ? answer(204) : answer(killed.error());
}

Task<HttpReply> Api::pause(Call call) {
  const auto wanted = parse_pause(call.body);
  if (!wanted) co_return answer(wanted.error());
  const auto paused = co_await fleet_.pause(call.team, call.id);
  co_return paused ? answer(204) : answer(paused.error());
}

Task<HttpReply> Api::connect_v1(Call call) {
  co_return co_await connect(std::move(call), Version::kV1);
}
Task<HttpReply> Api::connect_v2(Call call) {
  co_return co_await connect(std::move(call), Version::kV2);
}
Task<HttpReply> Api::connect(Call call, Version version) {
  const auto request = parse_connect(call.body, version, settings_.run_seconds_max);
  if (!request) co_return answer(request.error());
  const auto connected = co_await fleet_.connect(call.team, call.id, *request);
  if (!connected) co_return answer(connected.error());
  co_return answer(connected->resumed ? 201 : 200, describe_handle(connected->sandbox));
}

Task<HttpReply> Api::resume(Call call) {
  const auto request = parse_resume(call.body, settings_.run_seconds_max);
  if (!request) co_return answer(request.error());
  const auto sandbox = co_await fleet_.resume(call.team, call.id, *request);
  co_return sandbox ? answer(201, describe_handle(*sandbox)) : answer(sandbox.error());
}

Task<HttpReply> Api::timeout(Call call) {
  const auto seconds = parse_timeout(call.body);
  if (!seconds) co_return answer(seconds.error());
  const auto set = fleet_.set_timeout(call.team, call.id, *seconds);
  co_return set ? answer(204) : answer(set.error());
}

Task<HttpReply> Api::refresh(Call call) {
  const auto seconds = parse_refresh(call.body);
  if (!seconds) co_return answer(seconds.error());
  const auto refreshed = fleet_.refresh(call.team, call.id, *seconds);
  co_return refreshed ? answer(204) : answer(refreshed.error());
}

// ---- for tests against this server

namespace {

Json requests_of(const std::string& team, const RequestLog& log) {
  Json requests = Json::array();
  for (const auto& each : log.all()) {
    if (each.team != team) continue;
    requests.push_back({{"at", base::to_rfc3339(each.at)},
                        {"method", each.method},
                        {"path", each.path},
                        {"status", each.status},
                        {"sandbox_id", each.sandbox_id},
                        {"ms", each.took.count()},
                        {"fault", each.fault}});
  }
  return requests;
}

}  // namespace

Task<HttpReply> Api::show_requests(Call call) {
  co_return answer(200, {{"requests", requests_of(call.team, requests_.control)},
                         {"data_requests", requests_of(call.team, requests_.data)}});
}

Task<HttpReply> Api::show_faults(Call) {
  Json rules = Json::array();
  for (const auto& rule : faults_.rules()) rules.push_back(to_json(rule));
  co_return answer(200, {{"faults", rules}});
}

// {"faults": ["create:lost-reply:p=0.1", ...]} in place of those before.
Task<HttpReply> Api::set_faults(Call call) {
  const auto* texts = base::array_at(call.body, "faults");
  if (!texts) co_return answer(invalid("faults must be an array of strings"));
  std::vector<FaultRule> rules;
  for (const auto& text : *texts) {
    if (!text.is_string()) co_return answer(invalid("faults must be an array of strings"));
    auto rule = parse_fault(text.get<std::string>());
    if (!rule) co_return answer(invalid(rule.error().message));
    rules.push_back(*std::move(rule));
  }
  const auto set = faults_.set(std::move(rules));
  co_return set ? answer(204) : answer(invalid(set.error().message));
}

}  // namespace local_e2b
