#include "libs/wire/handshake.h"

#include <gtest/gtest.h>

#include "libs/wire/proof.h"

namespace wire {
namespace {

using std::chrono::minutes;

const base::WallTime kNow = base::WallTime(std::chrono::hours(24 * 365 * 56));
const std::string kKey = derive_key("fleet", TokenKind::kAttach, "uid-1", 3);

Claims attach_claims() {
  return {.uid = "uid-1", .epoch = 3, .run = 7, .issued = kNow, .expires = kNow + minutes(15)};
}

TEST(Handshake, BothSidesKnowTheSecretOfOneToken) {
  const auto split = split_token(sign(attach_claims(), kKey));
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(split->secret, secret_of(split->claims, kKey));
  EXPECT_EQ(split->claims.find(split->secret), std::string::npos);
  const auto claims = verify_claims(split->claims, TokenKind::kAttach, kKey);
  ASSERT_TRUE(claims) << claims.error().message;
  EXPECT_EQ(*claims, attach_claims());
}

TEST(Handshake, RefusesClaimsAsItWouldTheToken) {
  Claims admin = attach_claims();
  admin.kind = TokenKind::kAdmin;
  const auto shown = [](const Claims& claims) { return split_token(sign(claims, kKey))->claims; };
  const struct {
    const char* name;
    std::string claims;
    const char* why;
  } cases[] = {
      {"nothing", "", "not a Sandfleet token"},
      {"no_claims", "sf1.e30", "claims are not complete"},
      {"a_whole_token", sign(attach_claims(), kKey), "claims are not base64url"},
      {"another_kind", shown(admin), "it is for admin, not for attach"},
  };
  for (const auto& test : cases) {
    const auto claims = verify_claims(test.claims, TokenKind::kAttach, kKey);
    ASSERT_FALSE(claims) << test.name;
    EXPECT_EQ(claims.error().message, std::string("token refused: ") + test.why) << test.name;
  }
}

TEST(Handshake, TellsOfClaimsWhenTheirTokenHasEnded) {
  const auto split = split_token(sign(attach_claims(), kKey));
  const auto claims = verify_claims(split->claims, TokenKind::kAttach, kKey);
  ASSERT_TRUE(claims) << claims.error().message;
  EXPECT_FALSE(has_expired(*claims, kNow + minutes(19)));
  EXPECT_TRUE(has_expired(*claims, kNow + minutes(21)));
}

TEST(Handshake, SplitsNothingThatIsNoToken) {
  const std::string token = sign(attach_claims(), kKey);
  for (const std::string& bad :
       {std::string(), std::string("sf1."), token.substr(0, token.size() - 2), token + "AA",
        token.substr(0, token.rfind('.'))})
    EXPECT_FALSE(split_token(bad)) << bad;
}

TEST(Handshake, AProofIsGoodForItsSideItsTokenAndItsNoncesOnly) {
  const std::string secret = secret_of("sf1.claims", kKey);
  const Nonces nonces{new_nonce(), new_nonce()};
  const std::string proof = link_proof(ProofOf::kClient, secret, nonces);
  EXPECT_TRUE(is_link_proof(proof, ProofOf::kClient, secret, nonces));
  EXPECT_FALSE(is_link_proof("", ProofOf::kClient, secret, nonces));
  EXPECT_FALSE(is_link_proof(proof.substr(1), ProofOf::kClient, secret, nonces));
  EXPECT_FALSE(is_link_proof(proof, ProofOf::kExecutor, secret, nonces)) << "sent back";
  EXPECT_FALSE(is_link_proof(proof, ProofOf::kRenewal, secret, nonces));
  EXPECT_FALSE(is_link_proof(proof, ProofOf::kClient, secret_of("sf1.other", kKey), nonces));
  EXPECT_FALSE(is_link_proof(proof, ProofOf::kClient, secret, {new_nonce(), nonces.server}));
  EXPECT_FALSE(is_link_proof(proof, ProofOf::kClient, secret, {nonces.client, new_nonce()}));
  EXPECT_FALSE(is_link_proof(proof, ProofOf::kClient, secret, {nonces.server, nonces.client}));
}

}  // namespace
}  // namespace wire
