#include "libs/wire/proof.h"

#include "libs/base/crypto.h"

namespace wire {
namespace {

constexpr std::string_view kPurpose = "sandfleet answer\n";
constexpr std::size_t kNonceBytes = 16;

// Of fixed length each, so that no two questions with their answers make the same text.
std::string digests_of(const Question& question, std::string_view answer) {
  std::string digests;
  for (const std::string_view part :
       {std::string_view(question.nonce), std::string_view(question.method),
        std::string_view(question.path), std::string_view(question.body), answer})
    digests += base::sha256(part);
  return digests;
}

}  // namespace

std::string new_nonce() { return base::random_hex(kNonceBytes); }

std::string prove(std::string_view admin_key, const Question& question, std::string_view answer) {
  return base::to_hex(
      base::hmac_sha256(admin_key, std::string(kPurpose) + digests_of(question, answer)));
}

bool is_proven(std::string_view proof, std::string_view admin_key, const Question& question,
               std::string_view answer) {
  return base::equal_secrets(proof, prove(admin_key, question, answer));
}

}  // namespace wire
