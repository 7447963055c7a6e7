#include "agentd/way/attach_exchange.h"

#include <algorithm>

#include "libs/base/json.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace agentd {
namespace {

using base::Json;

constexpr std::size_t kHeadersMax = 16;
constexpr std::size_t kMessageBytesMax = 1'024;
constexpr base::Seconds kAskAgain{1};
constexpr base::Seconds kAskAgainMax{600};

NoWay not_the_service(const aio::HttpReply& reply, std::string_view what) {
  return {wire::NoEntry::kUnavailable,
          "the attach service answered " + std::to_string(reply.status) + ", " + std::string(what),
          kAskAgain};
}

std::optional<base::Milliseconds> retry_after(const aio::HttpFields& fields) {
  const auto told = std::ranges::find_if(fields, [](const auto& field) {
    return base::equal_ignoring_case(field.first, "Retry-After");
  });
  if (told == fields.end()) return std::nullopt;
  const auto seconds = base::parse_integer(base::trim(told->second));
  if (!seconds || *seconds < 0) return std::nullopt;
  return std::min(base::Seconds(*seconds), kAskAgainMax);
}

Answer refusal_in(const aio::HttpReply& reply, const Json& told) {
  const auto why = wire::no_entry_of(base::text_at(told, "reason").value_or(""));
  if (!why) return not_the_service(reply, "without a reason of its own");
  const std::string message = base::text_at(told, "message").value_or("");
  return NoWay{*why, base::on_one_line(base::cut(message, kMessageBytesMax)),
               retry_after(reply.fields)};
}

// What cannot stand in a header is not put there.
bool is_field(const std::string& name, const std::string& value) {
  const auto visible = [](unsigned char c) { return c > ' ' && c != ':' && c < 0x7f; };
  const auto printed = [](unsigned char c) { return c >= ' ' && c != 0x7f; };
  return !name.empty() && std::ranges::all_of(name, visible) && std::ranges::all_of(value, printed);
}

std::optional<Way> way_in(const Json& told, const wire::SandboxName& asked) {
  if (base::text_at(told, "namespace") != asked.space || base::text_at(told, "name") != asked.name)
    return std::nullopt;
  const Json* endpoint = base::object_at(told, "endpoint");
  const Json* headers = endpoint ? base::object_at(*endpoint, "headers") : nullptr;
  if (!headers || headers->size() > kHeadersMax) return std::nullopt;
  Way way{.uid = base::text_at(told, "uid").value_or(""),
          .epoch = base::integer_at(told, "epoch").value_or(0),
          .incarnation = base::integer_at(told, "incarnation").value_or(0),
          .run = base::integer_at(told, "run").value_or(0),
          .url = base::text_at(*endpoint, "url").value_or(""),
          .token = base::text_at(told, "token").value_or("")};
  for (const auto& [name, value] : headers->items()) {
    if (!value.is_string() || !is_field(name, value.get<std::string>())) return std::nullopt;
    way.headers.emplace_back(name, value.get<std::string>());
  }
  const auto expires = base::parse_rfc3339(base::text_at(told, "expires").value_or(""));
  const bool whole = !way.uid.empty() && way.epoch > 0 && way.run > 0 && !way.url.empty() &&
                     !way.token.empty() && expires;
  if (!whole) return std::nullopt;
  way.expires = *expires;
  return way;
}

}  // namespace

bool is_token(std::string_view text) {
  return !text.empty() && text.size() <= wire::kHarnessTokenBytesMax &&
         std::ranges::all_of(text, [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

aio::HttpRequest attach_request(const wire::SandboxName& sandbox,
                                const std::optional<std::string>& token,
                                const std::optional<RunOfWay>& failed, const std::string& host,
                                const std::string& prefix) {
  Json asked{{"namespace", sandbox.space}, {"name", sandbox.name}};
  if (failed)
    asked["failed"] = {{"uid", failed->uid}, {"epoch", failed->epoch}, {"run", failed->run}};
  aio::HttpRequest request{.method = "POST",
                           .target = prefix + wire::kAttachPath,
                           .fields = {{"Host", host}, {"Content-Type", "application/json"}},
                           .body = base::to_text(asked)};
  if (token) request.fields.emplace_back("Authorization", "Bearer " + *token);
  return request;
}

Answer attach_answer(const aio::HttpReply& reply, const wire::SandboxName& asked) {
  const auto told = base::parse_json(reply.body);
  if (!told || !told->is_object()) return not_the_service(reply, "and no JSON of its own");
  if (reply.status != 200) return refusal_in(reply, *told);
  auto way = way_in(*told, asked);
  if (!way) return not_the_service(reply, "and no whole way");
  return *std::move(way);
}

}  // namespace agentd
