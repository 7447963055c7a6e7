#include "controller/attach/certificate_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace controller {
namespace {

using std::chrono::hours;
using testing::HasSubstr;
using testing::SizeIs;

const base::WallTime kStart = base::WallTime(base::Seconds(1'800'000'000));

class CertificatePlanTest : public testing::Test {
 protected:
  CertificatePlanTest() { first_ = *next({}, kStart); }

  std::optional<TlsMaterial> next(const std::optional<TlsMaterial>& present, base::WallTime now) {
    auto made = next_material(present, terms_, now);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  void expect_usable(const TlsMaterial& material, base::WallTime now) {
    const auto usable = is_usable(material, now);
    EXPECT_TRUE(usable) << usable.error().message;
  }

  TlsTerms terms_{
      .names = {"a.svc", "b.svc"}, .authority_life = hours(3'000), .serving_life = hours(300)};
  TlsMaterial first_;
};

TEST_F(CertificatePlanTest, IsMadeWhereThereIsNone) {
  expect_usable(first_, kStart);
  EXPECT_EQ(base::facts_of(first_.serving)->names, terms_.names);
  EXPECT_EQ(next(first_, kStart), std::nullopt);
  EXPECT_EQ(next(first_, kStart + hours(199)), std::nullopt);
}

TEST_F(CertificatePlanTest, RenewsTheServingCertificateInTime) {
  const auto now = kStart + hours(201);
  const auto renewed = next(first_, now);
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->authority, first_.authority);
  EXPECT_EQ(renewed->bundle, first_.bundle);
  EXPECT_NE(renewed->serving, first_.serving);
  expect_usable(*renewed, now);
}

TEST_F(CertificatePlanTest, RenewsTheServingCertificateForOtherNames) {
  terms_.names = {"c.svc"};
  const auto renewed = next(first_, kStart);
  ASSERT_TRUE(renewed);
  EXPECT_EQ(base::facts_of(renewed->serving)->names, terms_.names);
  EXPECT_EQ(next(renewed, kStart), std::nullopt);
}

TEST_F(CertificatePlanTest, PublishesANewAuthorityBeforeItSigns) {
  TlsMaterial present = first_;
  base::WallTime now = kStart;
  for (; now < kStart + hours(1'999); now += hours(100))
    if (const auto renewed = next(present, now)) present = *renewed;
  now = kStart + hours(2'001);
  const auto published = next(present, now);
  ASSERT_TRUE(published);
  EXPECT_NE(published->authority, present.authority);
  EXPECT_EQ(published->serving, present.serving) << "clients read the bundle first";
  EXPECT_THAT(base::certificates_in(published->bundle), SizeIs(2));
  expect_usable(*published, now);

  now += hours(200);
  const auto signed_by_it = next(published, now);
  ASSERT_TRUE(signed_by_it);
  EXPECT_TRUE(
      base::is_issued_by(signed_by_it->serving.certificate, published->authority.certificate));
  expect_usable(*signed_by_it, now);

  const auto without_the_old = next(signed_by_it, kStart + hours(3'001));
  ASSERT_TRUE(without_the_old);
  EXPECT_THAT(base::certificates_in(without_the_old->bundle), SizeIs(1));
}

TEST_F(CertificatePlanTest, IsMadeAnewWhenItsAuthorityIsOverOrUnreadable) {
  const auto late = next(first_, kStart + hours(3'001));
  ASSERT_TRUE(late);
  EXPECT_NE(late->authority, first_.authority);
  expect_usable(*late, kStart + hours(3'001));
  TlsMaterial broken = first_;
  broken.authority.key = "nothing";
  const auto mended = next(broken, kStart);
  ASSERT_TRUE(mended);
  expect_usable(*mended, kStart);
  EXPECT_THAT(base::certificates_in(mended->bundle), SizeIs(2)) << "it may still be believed";
}

TEST_F(CertificatePlanTest, MendsAServingCertificateThatIsNotItsOwn) {
  for (void (*damage)(TlsMaterial&) : {+[](TlsMaterial& m) { m.serving = {}; },
                                       +[](TlsMaterial& m) { m.serving.key = m.authority.key; },
                                       +[](TlsMaterial& m) { m.serving.certificate = "?"; }}) {
    TlsMaterial damaged = first_;
    damage(damaged);
    EXPECT_FALSE(is_usable(damaged, kStart));
    const auto mended = next(damaged, kStart);
    ASSERT_TRUE(mended);
    expect_usable(*mended, kStart);
  }
}

TEST_F(CertificatePlanTest, NeverLetsABundleGrowWithoutBound) {
  TlsMaterial present = first_;
  for (int i = 0; i < 10; ++i) {
    present.authority.key = "lost";
    present = *next(present, kStart);
  }
  EXPECT_THAT(base::certificates_in(present.bundle), SizeIs(4));
}

// From another authority's hand: serving, the intermediate that issued it, and the root.
constexpr const char* kLeaf = R"(-----BEGIN CERTIFICATE-----
MIIBsDCCAVagAwIBAgIUQ1odm+yI0/tFhQvSeMVBBa9pEwowCgYIKoZIzj0EAwIw
FzEVMBMGA1UEAwwMaW50ZXJtZWRpYXRlMCAXDTI2MTEzMDEyMDAwOVoYDzIxMjYx
MTA2MTIwMDA5WjAPMQ0wCwYDVQQDDARsZWFmMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAEODgnBMVABVIRvMuKLAa2hc4V817ICwoP/gbMC7N6wdTLw4FL2CSpsxxV
TZ3i0ZKLgWfwtFnGJsm+OvWQnL9Mh6OBhTCBgjAJBgNVHRMEAjAAMA4GA1UdDwEB
/wQEAwIHgDATBgNVHSUEDDAKBggrBgEFBQcDATAQBgNVHREECTAHggVhLnN2YzAd
BgNVHQ4EFgQUCqQX/dMt+WzDqDtODg4j0pCMJU8wHwYDVR0jBBgwFoAUTESYD0BJ
ZDsHPyxxeI/u8Bjew+4wCgYIKoZIzj0EAwIDSAAwRQIgFwdH3GpKHyUaSuOz6onv
sFT8cpy2a2tcBb2tcVbCJRkCIQCPdEhVEFpeKuPb6n4obJPhXFbDP6ASVVUL6CFM
HPAp5A==
-----END CERTIFICATE-----
)";
constexpr const char* kLeafKey = R"(-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIKZMBg2G1+pb6P4YjCFRvo7E7imyuWvzI8DFDqUgyc92oAoGCCqGSM49
AwEHoUQDQgAEODgnBMVABVIRvMuKLAa2hc4V817ICwoP/gbMC7N6wdTLw4FL2CSp
sxxVTZ3i0ZKLgWfwtFnGJsm+OvWQnL9Mhw==
-----END EC PRIVATE KEY-----
)";
constexpr const char* kIntermediate = R"(-----BEGIN CERTIFICATE-----
MIIBjzCCATagAwIBAgIUMk41Um9atV9Ng1H8fXzqDV26YU4wCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEcm9vdDAgFw0yNjExMzAxMjAwMDlaGA8yMTI2MTEwNjEyMDAw
OVowFzEVMBMGA1UEAwwMaW50ZXJtZWRpYXRlMFkwEwYHKoZIzj0CAQYIKoZIzj0D
AQcDQgAERbBlA6IsN1hRRoXsTFXJ7bL6+ojJf1LMEPFH7HWefT8YY9z+es5CbIIq
rvEtc593GRD4m3CzH4yTQKiD18GVsKNmMGQwEgYDVR0TAQH/BAgwBgEB/wIBADAO
BgNVHQ8BAf8EBAMCAgQwHQYDVR0OBBYEFExEmA9ASWQ7Bz8scXiP7vAY3sPuMB8G
A1UdIwQYMBaAFO4IUp3dbkY7T07oQB4uRY9sPPchMAoGCCqGSM49BAMCA0cAMEQC
IDB2XTMOlMoWSUYwg85oe+LIvH27Pn9ME5jDdHoUIPCFAiAa5vV32VvbloRJnbe+
QAF1U7QqeiPigbmuHvCI5Kagvg==
-----END CERTIFICATE-----
)";
constexpr const char* kRoot = R"(-----BEGIN CERTIFICATE-----
MIIBZDCCAQqgAwIBAgIULYyP7aUAUsvbMla6pZNbOXd7u0EwCgYIKoZIzj0EAwIw
DzENMAsGA1UEAwwEcm9vdDAgFw0yNjExMzAxMjAwMDlaGA8yMTI2MTEwNjEyMDAw
OVowDzENMAsGA1UEAwwEcm9vdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABBO2
lL9hddv4cRjBaKw8zs7YGByCYeWZ03giT9XnLEedYACYMb1CHDNggXgxS7g7IAY6
ZJGmW4Qbe2ZdBXAJyO+jQjBAMA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQD
AgIEMB0GA1UdDgQWBBTuCFKd3W5GO09O6EAeLkWPbDz3ITAKBggqhkjOPQQDAgNI
ADBFAiA/arsoRyJ9Xe6oMWa2IP2duhpWCrr7f7ICsdoTsBomLwIhAJ3m1rrtmQh3
FzA8Nv7X1Cp/7qYc3/Lj9ma9DwTrxG2o
-----END CERTIFICATE-----
)";

TEST_F(CertificatePlanTest, BelievesARootThroughTheChainBehindTheServingCertificate) {
  const std::string leaf = kLeaf, intermediate = kIntermediate;
  const auto usable = [&](const std::string& chain, const std::string& bundle) {
    return bool(is_usable({.bundle = bundle, .serving = {chain, kLeafKey}}, kStart));
  };
  EXPECT_TRUE(usable(leaf + intermediate, kRoot));
  EXPECT_TRUE(usable(leaf, intermediate));
  EXPECT_FALSE(usable(leaf, kRoot)) << "clients cannot see who is between";
  EXPECT_FALSE(usable(leaf + first_.authority.certificate + intermediate, kRoot));
  EXPECT_FALSE(usable(leaf + intermediate, first_.bundle));
  EXPECT_FALSE(usable(leaf + intermediate, ""));
}

TEST_F(CertificatePlanTest, SaysWhyItCannotBeUsed) {
  EXPECT_THAT(is_usable(first_, kStart + hours(301)).error().message, HasSubstr("not valid now"));
  TlsMaterial strange = first_;
  strange.bundle = next({}, kStart)->bundle;
  EXPECT_THAT(is_usable(strange, kStart).error().message, HasSubstr("no authority in ca.crt"));
}

}  // namespace
}  // namespace controller
