#pragma once

#include <string>
#include <string_view>

// How an executor proves that an answer is its own. Whoever gets hold of its port can answer as it
// would; only it has the key that it was started with. The proof goes with a 200 to a request that
// carries a nonce, and is bound to all that was asked and answered.
namespace wire {

inline constexpr char kNonceField[] = "Sandfleet-Nonce";  // Of the request: fresh and random.
inline constexpr char kProofField[] = "Sandfleet-Proof";  // Of the answer.

// An executor's exit code when another has its port: one of ours, if it proves that.
inline constexpr int kExitPortTaken = 6;

struct Question {
  std::string nonce;
  std::string method, path, body;
};

std::string new_nonce();
// HMAC-SHA256(admin key, question and answer), in hexadecimal. No token is signed over a text that
// begins as this one does, so neither can pass for the other.
std::string prove(std::string_view admin_key, const Question& question, std::string_view answer);
// In constant time.
bool is_proven(std::string_view proof, std::string_view admin_key, const Question& question,
               std::string_view answer);

}  // namespace wire
