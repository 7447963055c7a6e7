#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/base/result.h"
#include "libs/wire/token.h"

// How the two ends of a link believe each other although an impostor may have the executor's port:
// the executor proves first that it can make the token's signature, then the client that it has it;
// the signature itself never travels. docs/protocol.md, "Opening a link".
namespace wire {

// A token for whoever has it: what may be shown, and the raw bytes that must not be.
struct SplitToken {
  std::string claims;
  std::string secret;
};
// kDenied: not a token.
base::Result<SplitToken> split_token(std::string_view token);

// The same from the shown part, for whoever has the key.
std::string secret_of(std::string_view claims, std::string_view key);
// As verify_signed of the token whose shown part this is; that the peer has the rest is still to be
// proven.
base::Result<Claims> verify_claims(std::string_view claims, TokenKind kind, std::string_view key);

// Both fresh and random, of 32 lower-case hexadecimal digits (new_nonce in proof.h).
struct Nonces {
  std::string client, server;
};

enum class ProofOf { kExecutor, kClient, kRenewal };
// HMAC-SHA256 with the token's secret, in hexadecimal.
std::string link_proof(ProofOf whose, std::string_view secret, const Nonces& nonces);
// In constant time.
bool is_link_proof(std::string_view proof, ProofOf whose, std::string_view secret,
                   const Nonces& nonces);

}  // namespace wire
