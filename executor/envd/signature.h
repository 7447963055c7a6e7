#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace executor {

// A signed file URL: whoever holds it may read or write one path without the access token.
struct SignedUrl {
  std::string path;                       // Exactly as in the query; empty when there is none.
  std::string operation;                  // "read" or "write".
  std::string user;                       // As in the query; empty when there is none.
  std::optional<std::string> expiration;  // Unix seconds, as in the query.
};

// "v1_" + unpadded base64 of SHA256(path ":" operation ":" user ":" token [":" expiration]).
std::string sign_url(const SignedUrl& url, std::string_view access_token);
// kDenied: no signature, a wrong one, or one that has expired.
base::Result<base::Done> check_signature(const SignedUrl& url, std::string_view access_token,
                                         const std::optional<std::string>& signature,
                                         base::WallTime now);

}  // namespace executor
