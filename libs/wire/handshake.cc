#include "libs/wire/handshake.h"

#include "libs/base/crypto.h"

namespace wire {
namespace {

constexpr std::size_t kSecretBytes = 32;

std::string_view purpose(ProofOf whose) {
  switch (whose) {
    case ProofOf::kExecutor:
      return "sandfleet executor\n";
    case ProofOf::kClient:
      return "sandfleet client\n";
    case ProofOf::kRenewal:
      return "sandfleet renewal\n";
  }
  return {};
}

}  // namespace

base::Result<SplitToken> split_token(std::string_view token) {
  CHECK_OK(unproven_claims(token));
  const std::size_t dot = token.rfind('.');
  auto secret = base::from_base64url(token.substr(dot + 1));
  if (!secret || secret->size() != kSecretBytes)
    return base::error(base::ErrorCode::kDenied, "token refused: its signature is none");
  return SplitToken{std::string(token.substr(0, dot)), *std::move(secret)};
}

std::string secret_of(std::string_view claims, std::string_view key) {
  return base::hmac_sha256(key, claims);
}

base::Result<Claims> verify_claims(std::string_view claims, TokenKind kind, std::string_view key) {
  const std::string whole = std::string(claims) + "." + base::to_base64url(secret_of(claims, key));
  return verify_signed(whole, kind, key);
}

std::string link_proof(ProofOf whose, std::string_view secret, const Nonces& nonces) {
  std::string text(purpose(whose));
  text.append(nonces.client).append("\n").append(nonces.server);
  return base::to_hex(base::hmac_sha256(secret, text));
}

bool is_link_proof(std::string_view proof, ProofOf whose, std::string_view secret,
                   const Nonces& nonces) {
  return base::equal_secrets(proof, link_proof(whose, secret, nonces));
}

}  // namespace wire
