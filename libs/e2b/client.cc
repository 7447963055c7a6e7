#include "libs/e2b/client.h"

#include <set>

#include "libs/e2b/client_api.h"

namespace e2b {

using base::Done;
using base::error;
using base::ErrorCode;
using base::Result;

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

bool matches(const SandboxInfo& info, const Filter& filter) {
  for (const auto& [key, value] : filter.metadata) {
    const auto found = info.metadata.find(key);
    if (found == info.metadata.end() || found->second != value) return false;
  }
  return true;
}

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
    if (!matches(*info, filter)) continue;
    std::string id = info->id;
    found.insert_or_assign(std::move(id), *std::move(info));
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
      told.value.reserve(found.size());
      while (!found.empty()) told.value.push_back(std::move(found.extract(found.begin()).mapped()));
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
  if (Api::says_done(*reply)) return KillAnswer::kKilled;
  if (Api::says_absent(*reply)) return KillAnswer::kNotThere;
  return api_->refusal_or_foreign(what, *reply);
}

Result<PauseAnswer> Client::pause(const std::string& id, std::stop_token stop) {
  CHECK_OK(check_id(id));
  const std::string what = "pause " + id;
  const net::Reply reply = api_->send(
      {.method = "POST", .path = sandbox_path(id, "/pause"), .body = "{}", .once = true}, stop);
  if (!reply) return net::error_of(what, reply.error());
  if (Api::says_done(*reply)) return PauseAnswer::kPaused;
  if (reply->status == 409) return PauseAnswer::kAlreadyPaused;
  return api_->refusal_or_foreign(what, *reply);
}

}  // namespace e2b
