#include <gtest/gtest.h>

#include <functional>

#include "libs/base/crypto.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/wire/admin.h"
#include "libs/wire/issuing_time.h"
#include "libs/wire/known_time.h"
#include "libs/wire/proof.h"
#include "libs/wire/token.h"

namespace wire {
namespace {

using base::ErrorCode;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const base::WallTime kNow(base::Milliseconds(1'800'000'000'000));
const std::string kFleetKey(32, 'k');

Claims attach_claims() {
  return {.kind = TokenKind::kAttach,
          .uid = "uid-1",
          .epoch = 3,
          .run = 7,
          .ceiling = Ceiling::kWorkspaceWrite,
          .subject = "system:serviceaccount:team:harness",
          .issued = kNow,
          .expires = kNow + minutes(15)};
}

std::string key_of(TokenKind kind, std::string_view uid = "uid-1", std::int64_t epoch = 3) {
  return derive_key(kFleetKey, kind, uid, epoch);
}

// A text signed as a token would be, whatever its claims are.
std::string signed_text(std::string_view claims, std::string_view key) {
  const std::string head = "sf1." + base::to_base64url(claims);
  return head + "." + base::to_base64url(base::hmac_sha256(key, head));
}

TEST(Token, CarriesItsClaims) {
  const std::string key = key_of(TokenKind::kAttach);
  const auto claims = verify(sign(attach_claims(), key), TokenKind::kAttach, key, kNow);
  ASSERT_TRUE(claims.ok()) << claims.error().message;
  EXPECT_EQ(*claims, attach_claims());
}

TEST(Token, HasAnotherKeyForEachKindUidAndEpoch) {
  const std::string key = key_of(TokenKind::kAttach);
  EXPECT_EQ(key.size(), 32u);
  EXPECT_EQ(key, base::hmac_sha256(kFleetKey, "attach:uid-1:3"));
  EXPECT_NE(key, key_of(TokenKind::kAdmin));
  EXPECT_NE(key, key_of(TokenKind::kAttach, "uid-2"));
  EXPECT_NE(key, key_of(TokenKind::kAttach, "uid-1", 4));
}

TEST(Token, IsRefusedForAReason) {
  const std::string key = key_of(TokenKind::kAttach);
  const std::string good = sign(attach_claims(), key);
  std::string tampered = good;
  tampered[6] = tampered[6] == 'A' ? 'B' : 'A';
  Claims admin = attach_claims();
  admin.kind = TokenKind::kAdmin;
  const struct {
    const char* name;
    std::string token;
    base::WallTime now;
    std::string_view reason;
  } cases[] = {
      {"empty", "", kNow, "not a Sandfleet token"},
      {"prefix_only", "sf1.", kNow, "not a Sandfleet token"},
      {"no_prefix", good.substr(4), kNow, "not a Sandfleet token"},
      {"too_long", "sf1." + std::string(5000, 'a') + ".x", kNow, "not a Sandfleet token"},
      {"no_signature", good.substr(0, good.rfind('.') + 1), kNow, "wrong signature"},
      {"cut_short", good.substr(0, good.size() - 3), kNow, "wrong signature"},
      {"tampered", tampered, kNow, "wrong signature"},
      {"another_epoch", sign(attach_claims(), key_of(TokenKind::kAttach, "uid-1", 4)), kNow,
       "wrong signature"},
      {"another_kind", sign(admin, key), kNow, "it is for admin, not for attach"},
      {"signed_garbage", signed_text("{", key), kNow, "claims are not JSON"},
      {"signed_no_claims", signed_text("{}", key), kNow, "claims are not complete"},
      {"past_expiry_and_slack", good, kNow + minutes(21), "expired"},
  };
  for (const auto& test : cases) {
    const auto claims = verify(test.token, TokenKind::kAttach, key, test.now);
    ASSERT_FALSE(claims.ok()) << test.name;
    EXPECT_EQ(claims.error().code, ErrorCode::kDenied) << test.name;
    EXPECT_EQ(claims.error().message, "token refused: " + std::string(test.reason)) << test.name;
  }
}

TEST(Token, SaysItsClaimsWithoutProof) {
  const auto claims = unproven_claims(sign(attach_claims(), "any key"));
  ASSERT_TRUE(claims) << claims.error().message;
  EXPECT_EQ(*claims, attach_claims());
  for (const char* bad : {"", "sf1.", "sf1.e30.", "bearer"})
    EXPECT_EQ(unproven_claims(bad).error().code, ErrorCode::kDenied) << bad;
}

TEST(Token, IsStillGoodWithinTheSlack) {
  const std::string key = key_of(TokenKind::kAttach);
  EXPECT_TRUE(verify(sign(attach_claims(), key), TokenKind::kAttach, key, kNow + minutes(19)).ok());
}

TEST(Proof, IsGoodForItsQuestionItsAnswerAndItsKeyOnly) {
  const std::string key = key_of(TokenKind::kAdmin);
  const Question asked{"nonce", "GET", "/v1/health", ""};
  const std::string proof = prove(key, asked, "well");
  EXPECT_TRUE(is_proven(proof, key, asked, "well"));
  const struct {
    const char* name;
    std::string proof, key;
    Question question;
    std::string answer;
  } cases[] = {
      {"none", "", key, asked, "well"},
      {"cut_short", proof.substr(0, 63), key, asked, "well"},
      {"another_epochs_key", proof, key_of(TokenKind::kAdmin, "uid-1", 4), asked, "well"},
      {"the_attach_key", proof, key_of(TokenKind::kAttach), asked, "well"},
      {"replayed", proof, key, {"other", "GET", "/v1/health", ""}, "well"},
      {"another_method", proof, key, {"nonce", "POST", "/v1/health", ""}, "well"},
      {"another_path", proof, key, {"nonce", "GET", "/v1/quiesce", ""}, "well"},
      {"another_body", proof, key, {"nonce", "GET", "/v1/health", "{}"}, "well"},
      {"another_answer", proof, key, asked, "better"},
      {"shifted", proof, key, {"nonceG", "ET", "/v1/health", ""}, "well"},
  };
  for (const auto& test : cases)
    EXPECT_FALSE(is_proven(test.proof, test.key, test.question, test.answer)) << test.name;
}

TEST(Proof, IsAskedForWithAnotherNonceEachTime) { EXPECT_NE(new_nonce(), new_nonce()); }

TEST(AdminMessages, ReadWhatTheyWrote) {
  const Identity identity{"uid-1", 2, 3, 4};
  EXPECT_EQ(*identity_from_json(to_json(identity)), identity);

  const auto health = health_from_json(to_json(Health{"i-1", "0.1.0", identity, true}));
  ASSERT_TRUE(health.ok());
  EXPECT_EQ(health->instance, "i-1");
  EXPECT_EQ(health->version, "0.1.0");
  EXPECT_EQ(health->identity, identity);
  EXPECT_TRUE(health->quiesced);

  EXPECT_EQ(quiesce_from_json(to_json(Quiesce{30}))->deadline_seconds, 30);
  EXPECT_EQ(quiesce_from_json(base::Json::object())->deadline_seconds, 120);
  EXPECT_FALSE(quiesce_from_json(base::Json::object())->if_idle_for_ms);
  EXPECT_EQ(quiesce_from_json(to_json(Quiesce{30, 60'000}))->if_idle_for_ms, 60'000);
  EXPECT_EQ(*activity_from_json(to_json(Activity{1'234})), Activity{1'234});

  const auto resumed = resumed_from_json(to_json(Resumed{identity, 123}));
  ASSERT_TRUE(resumed.ok());
  EXPECT_EQ(resumed->identity, identity);
  EXPECT_EQ(resumed->now_ms, 123);
  EXPECT_FALSE(resumed->news);
  const News news{"rolledBack", "It is as it was at 9."};
  EXPECT_EQ(resumed_from_json(to_json(Resumed{identity, 123, news}))->news, news);
  for (const News& bad : {News{"", "x"}, News{std::string(65, 'x'), "x"}, News{"lost", ""},
                          News{"lost", std::string(1025, 'x')}})
    EXPECT_FALSE(resumed_from_json(to_json(Resumed{identity, 123, bad}))) << bad.kind;

  const auto secrets = start_secrets_from_json(
      to_json(StartSecrets{"uid-1", 2, std::string(32, '\1'), std::string(32, '\xff')}));
  ASSERT_TRUE(secrets.ok());
  EXPECT_EQ(secrets->uid, "uid-1");
  EXPECT_EQ(secrets->epoch, 2);
  EXPECT_EQ(secrets->attach_key, std::string(32, '\1'));
  EXPECT_EQ(secrets->admin_key, std::string(32, '\xff'));
}

TEST(AdminMessages, NameTheFieldThatIsWrong) {
  const std::string hex(64, 'a');
  const auto message = [](const auto& result) {
    return result.ok() ? std::string("accepted") : result.error().message;
  };
  const struct {
    std::string got, wanted;
  } cases[] = {
      {message(identity_from_json({{"uid", ""}})), "\"uid\" must be"},
      {message(identity_from_json({{"uid", "u"}, {"epoch", -1}})), "\"epoch\" must be"},
      {message(identity_from_json({{"uid", "u"}, {"epoch", 1}})), "\"incarnation\" must be"},
      {message(health_from_json({{"instance", "i"}})), "\"version\" must be"},
      {message(health_from_json({{"instance", std::string(257, 'i')}})), "\"instance\" must be"},
      {message(quiesce_from_json({{"deadlineSeconds", 0}})), "\"deadlineSeconds\" must be"},
      {message(quiesce_from_json({{"deadlineSeconds", 3601}})), "\"deadlineSeconds\" must be"},
      {message(quiesce_from_json(base::Json::array())), "not an object"},
      {message(quiesce_from_json({{"ifIdleForMs", -1}})), "\"ifIdleForMs\" must be"},
      {message(quiesce_from_json({{"ifIdleForMs", "long"}})), "\"ifIdleForMs\" must be"},
      {message(activity_from_json({{"idleMs", -1}})), "\"idleMs\" must be"},
      {message(activity_from_json(base::Json::object())), "\"idleMs\" must be"},
      {message(resumed_from_json({{"nowMs", 1}})), "\"identity\" must be"},
      {message(start_secrets_from_json({{"uid", "u"}})), "\"epoch\" must be"},
      {message(start_secrets_from_json({{"uid", "u"}, {"epoch", 1}, {"attachKey", "ab"}})),
       "\"attachKey\" must be"},
      {message(start_secrets_from_json({{"uid", "u"}, {"epoch", 1}, {"attachKey", hex}})),
       "\"adminKey\" must be"},
  };
  for (const auto& test : cases)
    EXPECT_NE(test.got.find(test.wanted), std::string::npos)
        << "wanted " << test.wanted << ", got: " << test.got;
}

TEST(KnownTime, IsTheLatestThatWasHeardOf) {
  base::FakeClock clock;
  KnownTime known(clock);
  const base::WallTime began = clock.wall();
  clock.advance(seconds(10));
  EXPECT_EQ(known.now(), began + seconds(10));
  known.learn(began + seconds(20));
  EXPECT_EQ(known.now(), began + seconds(20));
  known.learn(began + seconds(15));
  EXPECT_EQ(known.now(), began + seconds(20));
  clock.advance(seconds(10));
  EXPECT_EQ(known.now(), began + seconds(30)) << "it goes on";
  clock.jump_wall(seconds(15));
  EXPECT_EQ(known.now(), began + seconds(35)) << "it stood still, and was set";
}

TEST(IssuingTime, GoesOnWhenTheWallClockIsSetBack) {
  base::FakeClock clock;
  const IssuingTime issuing(clock);
  const base::WallTime began = clock.wall();
  clock.jump_wall(hours(2));
  EXPECT_EQ(issuing.now(), began + hours(2));
  clock.jump_wall(-hours(4));
  clock.advance(minutes(1));
  EXPECT_EQ(issuing.now(), began + hours(2) + minutes(1));
  clock.jump_wall(hours(5));
  EXPECT_EQ(issuing.now(), began + hours(3) + minutes(1));
}

TEST(KnownTime, IsMovedBeyondTheSlackByTheControllerAlone) {
  base::FakeClock clock;
  KnownTime known(clock);
  const base::WallTime began = clock.wall();
  clock.jump_wall(-hours(2));
  EXPECT_EQ(known.now(), began);
  clock.jump_wall(hours(4));
  EXPECT_EQ(known.now(), began + kClockSlack);
  for (int token = 0; token < 3; ++token) known.learn(began + hours(5));
  EXPECT_EQ(known.now(), began + kClockSlack);
  known.tell(began + hours(2));
  EXPECT_EQ(known.now(), began + hours(2));
  known.tell(began - hours(2));
  clock.jump_wall(-hours(4));
  EXPECT_EQ(known.now(), began - hours(2)) << "back as well as forth";
}

}  // namespace
}  // namespace wire
