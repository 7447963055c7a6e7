#include "executor/envd/signature.h"

#include <gtest/gtest.h>

#include "libs/base/crypto.h"

namespace executor {
namespace {

const base::WallTime kNow(base::Seconds(1'800'000'000));

TEST(Signature, IsTheUnpaddedDigestOfItsParts) {
  std::string digest = base::to_base64(base::sha256("/a b:read:user:tok:1800000000"));
  digest.pop_back();  // 32 bytes leave one '='.
  EXPECT_EQ(sign_url({"/a b", "read", "user", "1800000000"}, "tok"), "v1_" + digest);
  EXPECT_NE(sign_url({"/a b", "read", "user", {}}, "tok"),
            sign_url({"/a b", "write", "user", {}}, "tok"));
}

TEST(Signature, IsJudged) {
  const SignedUrl url{"/a", "read", "", {}};
  const SignedUrl fresh{"/a", "read", "", "1800000000"};
  const SignedUrl stale{"/a", "read", "", "1799999999"};
  const SignedUrl odd{"/a", "read", "", "soon"};
  const struct {
    const char* name;
    SignedUrl url;
    std::optional<std::string> signature;
    std::string wanted;
  } cases[] = {
      {"good", url, sign_url(url, "tok"), ""},
      {"good_until_its_second_ends", fresh, sign_url(fresh, "tok"), ""},
      {"missing", url, std::nullopt, "missing signature query parameter"},
      {"empty", url, "", "invalid signature"},
      {"another_token", url, sign_url(url, "other"), "invalid signature"},
      {"another_path", url, sign_url({"/b", "read", "", {}}, "tok"), "invalid signature"},
      {"expiry_added_later", fresh, sign_url(url, "tok"), "invalid signature"},
      {"expired", stale, sign_url(stale, "tok"), "signature is already expired"},
      {"expiry_not_a_number", odd, sign_url(odd, "tok"), "signature_expiration is not a number"},
  };
  for (const auto& test : cases) {
    const auto judged = check_signature(test.url, "tok", test.signature, kNow);
    EXPECT_EQ(judged.ok() ? "" : judged.error().message, test.wanted) << test.name;
  }
}

}  // namespace
}  // namespace executor
