#include "executor/envd/signature.h"

#include "libs/base/crypto.h"
#include "libs/base/strings.h"

namespace executor {

std::string sign_url(const SignedUrl& url, std::string_view access_token) {
  std::string text = url.path + ":" + url.operation + ":" + url.user + ":";
  text += access_token;
  if (url.expiration) text += ":" + *url.expiration;
  std::string encoded = base::to_base64(base::sha256(text));
  while (encoded.ends_with('=')) encoded.pop_back();
  return "v1_" + encoded;
}

base::Result<base::Done> check_signature(const SignedUrl& url, std::string_view access_token,
                                         const std::optional<std::string>& signature,
                                         base::WallTime now) {
  using base::ErrorCode;
  if (!signature) return base::error(ErrorCode::kDenied, "missing signature query parameter");
  if (!base::equal_secrets(*signature, sign_url(url, access_token)))
    return base::error(ErrorCode::kDenied, "invalid signature");
  if (!url.expiration) return base::Done{};
  const auto seconds = base::parse_integer(*url.expiration);
  if (!seconds) return base::error(ErrorCode::kDenied, "signature_expiration is not a number");
  if (std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count() > *seconds)
    return base::error(ErrorCode::kDenied, "signature is already expired");
  return base::Done{};
}

}  // namespace executor
