#include "libs/wire/token.h"

#include <optional>

#include "libs/base/crypto.h"
#include "libs/base/json.h"
#include "libs/wire/words.h"

namespace wire {
namespace {

constexpr std::string_view kPrefix = "sf1.";
constexpr std::size_t kTokenBytesMax = 4096;

constexpr std::string_view to_word(TokenKind kind) {
  return kind == TokenKind::kAttach ? "attach" : "admin";
}

}  // namespace

std::string_view to_word(Ceiling ceiling) { return word_for(kCeilingWords, ceiling); }
std::optional<Ceiling> ceiling_of(std::string_view word) { return value_for(kCeilingWords, word); }

namespace {

std::optional<TokenKind> kind_of(std::string_view word) {
  if (word == to_word(TokenKind::kAttach)) return TokenKind::kAttach;
  if (word == to_word(TokenKind::kAdmin)) return TokenKind::kAdmin;
  return std::nullopt;
}

base::Error denied(std::string_view why) {
  return base::error(base::ErrorCode::kDenied, "token refused: ", why);
}

base::Json to_json(const Claims& claims) {
  return {{"kind", to_word(claims.kind)},
          {"uid", claims.uid},
          {"epoch", claims.epoch},
          {"run", claims.run},
          {"ceiling", to_word(claims.ceiling)},
          {"subject", claims.subject},
          {"issued", claims.issued.time_since_epoch().count()},
          {"expires", claims.expires.time_since_epoch().count()}};
}

std::optional<Claims> claims_from_json(const base::Json& json) {
  const auto kind = kind_of(base::text_at(json, "kind").value_or(""));
  const auto ceiling = ceiling_of(base::text_at(json, "ceiling").value_or(""));
  const auto uid = base::text_at(json, "uid");
  const auto epoch = base::integer_at(json, "epoch");
  const auto run = base::integer_at(json, "run");
  const auto issued = base::integer_at(json, "issued");
  const auto expires = base::integer_at(json, "expires");
  if (!kind || !ceiling || !uid || !epoch || !run || !issued || !expires) return std::nullopt;
  return Claims{.kind = *kind,
                .uid = *uid,
                .epoch = *epoch,
                .run = *run,
                .ceiling = *ceiling,
                .subject = base::text_at(json, "subject").value_or(""),
                .issued = base::WallTime(base::Milliseconds(*issued)),
                .expires = base::WallTime(base::Milliseconds(*expires))};
}

// Where a token's last part begins; nothing when it is no token.
std::optional<std::size_t> last_dot(std::string_view token) {
  const std::size_t dot = token.rfind('.');
  if (token.size() > kTokenBytesMax || !token.starts_with(kPrefix) || dot < kPrefix.size())
    return std::nullopt;
  return dot;
}

}  // namespace

std::string derive_key(std::string_view fleet_key, TokenKind kind, std::string_view uid,
                       std::int64_t epoch) {
  std::string message(to_word(kind));
  message.append(":").append(uid).append(":").append(std::to_string(epoch));
  return base::hmac_sha256(fleet_key, message);
}

std::string sign(const Claims& claims, std::string_view key) {
  std::string token(kPrefix);
  token += base::to_base64url(base::to_text(to_json(claims)));
  return token + "." + base::to_base64url(base::hmac_sha256(key, token));
}

base::Result<Claims> verify_signed(std::string_view token, TokenKind kind, std::string_view key) {
  const auto dot = last_dot(token);
  if (!dot) return denied("not a Sandfleet token");
  // The signature comes first: nothing of an unsigned text is believed, not even its kind.
  const auto signature = base::from_base64url(token.substr(*dot + 1));
  const std::string expected = base::hmac_sha256(key, token.substr(0, *dot));
  if (!signature || !base::equal_secrets(*signature, expected)) return denied("wrong signature");
  const auto claims = unproven_claims(token);
  if (!claims) return claims.error();
  if (claims->kind != kind)
    return base::error(base::ErrorCode::kDenied, "token refused: it is for ", to_word(claims->kind),
                       ", not for ", to_word(kind));
  return *claims;
}

base::Result<Claims> verify(std::string_view token, TokenKind kind, std::string_view key,
                            base::WallTime now) {
  TRY(auto claims, verify_signed(token, kind, key));
  if (has_expired(claims, now)) return denied("expired");
  return claims;
}

base::Result<Claims> unproven_claims(std::string_view token) {
  const auto dot = last_dot(token);
  if (!dot) return denied("not a Sandfleet token");
  const auto text = base::from_base64url(token.substr(kPrefix.size(), *dot - kPrefix.size()));
  if (!text) return denied("claims are not base64url");
  const auto json = base::parse_json(*text);
  if (!json) return denied("claims are not JSON");
  const auto claims = claims_from_json(*json);
  if (!claims) return denied("claims are not complete");
  return *claims;
}

}  // namespace wire
