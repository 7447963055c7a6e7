#include "controller/attach/service.h"

#include <utility>

#include "libs/base/json.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"
#include "libs/net/server/routes.h"
#include "libs/wire/attach.h"
#include "libs/wire/token.h"

namespace controller {
namespace {

using base::ErrorCode;
using base::Json;

constexpr std::size_t kWaysMax = 8'192;
constexpr base::Seconds kWayRemembered{60};
constexpr std::string_view kBearer = "Bearer ";
constexpr std::size_t kNameBytesMax = 253;  // Of any object.
constexpr base::Seconds kAskAgain{1};       // Whoever did not answer may then.
// Of lines about refusals: anybody can cause those. The metric counts all.
constexpr base::Rate kRefusalsTold{100, base::Milliseconds(100)};

NoEntry reason_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return NoEntry::kInvalid;
    case ErrorCode::kDenied:
      return NoEntry::kDenied;
    case ErrorCode::kNotFound:
      return NoEntry::kNotFound;
    case ErrorCode::kRateLimited:
      return NoEntry::kRateLimited;
    default:
      return NoEntry::kUnavailable;
  }
}

Refused refused(const base::Error& error) {
  Refused refused{reason_of(error.code), error.message, error.retry_after};
  if (refused.reason == NoEntry::kUnavailable && !refused.retry_after)
    refused.retry_after = kAskAgain;
  return refused;
}

// The caller's own right is not in question.
Refused unavailable(base::Error error) {
  error.code = ErrorCode::kUnavailable;
  return refused(error);
}

std::string token_of(const net::ServedRequest& request) {
  const std::string_view told = request.authorization;
  const bool bearer = base::equal_ignoring_case(told.substr(0, kBearer.size()), kBearer);
  return bearer ? std::string(base::trim(told.substr(kBearer.size()))) : std::string();
}

std::string client_of(const net::ServedRequest& request) {
  return request.peer ? "pid:" + std::to_string(request.peer->pid) : request.client;
}

net::ServedAnswer json(int status, const Json& body) {
  return {.status = status, .body = base::to_text(body) + "\n", .content_type = "application/json"};
}

net::ServedAnswer answer_of(const Refused& refused) {
  net::ServedAnswer answer =
      json(http_status_of(refused.reason),
           {{"reason", to_word(refused.reason)}, {"message", refused.message}});
  if (refused.retry_after)
    answer.retry_after = std::chrono::ceil<base::Seconds>(*refused.retry_after);
  return answer;
}

}  // namespace

AttachService::AttachService(Parts parts, std::string fleet_key, WayTo way_to, WayFailed way_failed)
    : parts_(parts),
      fleet_key_(std::move(fleet_key)),
      way_to_(std::move(way_to)),
      way_failed_(std::move(way_failed)),
      issuing_(parts.clock),
      ways_(kWaysMax),
      failed_told_(kWaysMax),
      refusals_told_(kRefusalsTold, parts.clock.now()) {}

net::ServedAnswer AttachService::answer(const net::ServedRequest& request,
                                        const std::stop_token& stop) {
  const base::Moment begun = parts_.clock.now();
  const Outcome outcome = attend(request, stop);
  parts_.registry.histogram("sandfleet_attach_request_duration_seconds")
      .observe(std::chrono::duration<double>(parts_.clock.now() - begun).count());
  note(request, outcome);
  if (const auto* given = std::get_if<Json>(&outcome.reply)) return json(200, *given);
  return answer_of(std::get<Refused>(outcome.reply));
}

net::ServedHandler AttachService::handler(std::stop_token stop) {
  return net::route({{"POST", std::string(wire::kAttachPath),
                      [this, stop = std::move(stop)](const net::ServedRequest& request) {
                        return answer(request, stop);
                      }}});
}

base::Result<AttachService::Question> AttachService::question_in(const std::string& body) {
  const auto asked = base::parse_json(body);
  if (!asked || !asked->is_object())
    return base::error(ErrorCode::kInvalid, "the body must be a JSON object");
  const auto part = [&](const char* key) -> base::Result<std::string> {
    const auto text = base::text_at(*asked, key);
    if (!text || text->empty() || text->size() > kNameBytesMax)
      return base::error(ErrorCode::kInvalid, "\"", key, "\" must be a text of 1 to ",
                         std::to_string(kNameBytesMax), " bytes");
    return *text;
  };
  Question question;
  TRY(question.sandbox.space, part("namespace"));
  TRY(question.sandbox.name, part("name"));
  if (!asked->contains("failed")) return question;
  const Json* failed = base::object_at(*asked, "failed");
  const auto uid = failed ? base::text_at(*failed, "uid") : std::nullopt;
  const auto epoch = failed ? base::integer_at(*failed, "epoch") : std::nullopt;
  const auto run = failed ? base::integer_at(*failed, "run") : std::nullopt;
  if (!uid || !epoch || !run)
    return base::error(ErrorCode::kInvalid,
                       "\"failed\" must be an object with \"uid\", \"epoch\" and \"run\"");
  question.failed = Run{*uid, *epoch, *run};
  return question;
}

AttachService::Run AttachService::run_of(const api::Sandbox& sandbox) {
  return {sandbox.metadata.uid, sandbox.status.epoch, sandbox.status.run};
}

AttachService::Outcome AttachService::attend(const net::ServedRequest& request,
                                             const std::stop_token& stop) {
  const auto question = question_in(request.body);
  if (!question) return {{}, {}, refused(question.error())};
  const api::Key& key = question->sandbox;
  const auto caller =
      parts_.access.admit({request.client, token_of(request), request.peer}, key, stop);
  if (!caller) return {{}, key, refused(caller.error())};
  const auto sandbox = parts_.store.find_sandbox(key);
  const auto verdict = judge(sandbox.get(), key);
  if (const auto* refusal = std::get_if<Refused>(&verdict)) return {*caller, key, *refusal};
  if (const auto* wakes = std::get_if<Wakes>(&verdict))
    return {*caller, key, wake(*sandbox, wakes->meanwhile)};
  if (question->failed == run_of(*sandbox)) note_failed(*sandbox);
  auto way = way_to(*sandbox, stop);
  if (!way) return {*caller, key, unavailable(way.error())};
  return {*caller, key, reply_of({*sandbox, *caller, *std::move(way)})};
}

void AttachService::note_failed(const api::Sandbox& sandbox) {
  const Run run = run_of(sandbox);
  {
    const base::Moment now = parts_.clock.now();
    std::lock_guard lock(mutex_);
    if (failed_told_.find(run, now)) return;
    failed_told_.put(run, {}, now + kFailedToldAgain);
  }
  way_failed_(sandbox);
}

// Where whoever acts for it sees it, for that may be another replica. Whoever is refused for
// another write, a wish like this one perhaps, comes again.
Refused AttachService::wake(const api::Sandbox& sandbox, Refused meanwhile) {
  const api::Metadata& metadata = sandbox.metadata;
  const auto asked =
      parts_.store.request_wake(metadata.key, {metadata.uid, metadata.resource_version},
                                base::to_rfc3339(parts_.clock.wall()));
  if (!asked && asked.error().code != ErrorCode::kConflict) return unavailable(asked.error());
  return meanwhile;
}

base::Result<envd::Route> AttachService::way_to(const api::Sandbox& sandbox,
                                                const std::stop_token& stop) {
  const Run run = run_of(sandbox);
  {
    std::lock_guard lock(mutex_);
    if (auto known = ways_.find(run, parts_.clock.now())) return *std::move(known);
  }
  TRY(auto way, way_to_(sandbox, stop));
  std::lock_guard lock(mutex_);
  ways_.put(run, way, parts_.clock.now() + kWayRemembered);
  return way;
}

Json AttachService::reply_of(const Attached& attached) const {
  const api::Sandbox& sandbox = attached.sandbox;
  const api::SandboxStatus& status = sandbox.status;
  const base::WallTime now = issuing_.now();
  const wire::Claims claims{.kind = wire::TokenKind::kAttach,
                            .uid = sandbox.metadata.uid,
                            .epoch = status.epoch,
                            .run = status.run,
                            .subject = attached.subject,
                            .issued = now,
                            .expires = now + kAttachTokenLife};
  const std::string key = wire::derive_key(fleet_key_, claims.kind, claims.uid, claims.epoch);
  Json headers = Json::object();
  for (const net::Header& header : attached.way.headers.all()) headers[header.name] = header.value;
  return {{"namespace", sandbox.metadata.key.space},
          {"name", sandbox.metadata.key.name},
          {"uid", claims.uid},
          {"epoch", claims.epoch},
          {"incarnation", status.incarnation},
          {"run", claims.run},
          {"sandboxID", status.sandbox_id},
          {"endpoint", {{"url", attached.way.url}, {"headers", std::move(headers)}}},
          {"token", wire::sign(claims, key)},
          {"expires", base::to_rfc3339(claims.expires)}};
}

void AttachService::note(const net::ServedRequest& request, const Outcome& outcome) {
  const auto* refusal = std::get_if<Refused>(&outcome.reply);
  const std::string word(refusal ? to_word(refusal->reason) : "Attached");
  parts_.registry.counter("sandfleet_attach_requests_total", {word}).add();
  std::int64_t untold = 0;
  if (refusal) {
    std::lock_guard lock(mutex_);
    if (!refusals_told_.take(parts_.clock.now())) {
      ++refusals_untold_;
      return;
    }
    untold = std::exchange(refusals_untold_, 0);
  }
  base::log::info("attach", {{"sandbox", base::on_one_line(api::to_text(outcome.sandbox))},
                             {"caller", base::on_one_line(outcome.caller)},
                             {"client", client_of(request)},
                             {"outcome", word},
                             {"why", refusal ? base::on_one_line(refusal->message) : ""},
                             {"refusals_untold", untold}});
}

}  // namespace controller
