#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "libs/base/clock.h"
#include "libs/base/result.h"
#include "libs/wire/known_time.h"

// Tokens that open an executor. Nothing about them is stored: whoever holds the fleet key can make
// the keys of any (uid, epoch), and those keys make and check tokens.
namespace wire {

enum class TokenKind { kAttach, kAdmin };

// The key that the executor of (uid, epoch) gets at its start, one a kind: HMAC-SHA256(fleet key,
// kind ":" uid ":" epoch). 32 raw bytes.
std::string derive_key(std::string_view fleet_key, TokenKind kind, std::string_view uid,
                       std::int64_t epoch);

enum class Ceiling { kReadOnly, kWorkspaceWrite, kDangerFullAccess };
inline constexpr std::pair<Ceiling, std::string_view> kCeilingWords[] = {
    {Ceiling::kReadOnly, "ReadOnly"},
    {Ceiling::kWorkspaceWrite, "WorkspaceWrite"},
    {Ceiling::kDangerFullAccess, "DangerFullAccess"},
};
std::string_view to_word(Ceiling ceiling);
std::optional<Ceiling> ceiling_of(std::string_view word);

struct Claims {
  TokenKind kind = TokenKind::kAttach;
  std::string uid;
  std::int64_t epoch = 0;
  std::int64_t run = 0;  // Attach tokens only: the run they were made for.
  Ceiling ceiling = Ceiling::kDangerFullAccess;
  std::string subject = {};  // Who asked, for the log.
  base::WallTime issued = {};
  base::WallTime expires = {};
  bool operator==(const Claims&) const = default;
};

// "sf1." + base64url(JSON claims) + "." + base64url(HMAC-SHA256(key, the two parts before)).
std::string sign(const Claims& claims, std::string_view key);
// Whether it has ended or not. kDenied with the reason: not a token, wrong signature, another kind.
base::Result<Claims> verify_signed(std::string_view token, TokenKind kind, std::string_view key);
// By more than the slack.
inline bool has_expired(const Claims& claims, base::WallTime now) {
  return claims.expires + kClockSlack < now;
}
// Both. kDenied also when it has expired.
base::Result<Claims> verify(std::string_view token, TokenKind kind, std::string_view key,
                            base::WallTime now);
// What a token says of itself, which anybody may have written: good for finding the key to verify
// it by, and for nothing else. kDenied: not a token.
base::Result<Claims> unproven_claims(std::string_view token);

}  // namespace wire
