#include "libs/base/certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace base {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Certificates have whole seconds.
const WallTime kStart = WallTime(std::chrono::duration_cast<Milliseconds>(Seconds(1'800'000'000)));
const WallTime kEnd = kStart + std::chrono::hours(24);

Certified authority(const std::string& name = "authority") {
  auto made = make_authority({name, {}, kStart, kEnd});
  EXPECT_TRUE(made) << made.error().message;
  return *std::move(made);
}

TEST(Certificate, SaysWhatWasAskedFor) {
  const Certified issuer = authority();
  const auto made =
      issue(issuer, {"attach", {"b.svc", "10.0.0.1", "*.a.svc", "::1"}, kStart, kEnd});
  ASSERT_TRUE(made) << made.error().message;
  const auto facts = facts_of(*made);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->common_name, "attach");
  EXPECT_THAT(facts->names, ElementsAre("*.a.svc", "10.0.0.1", "::1", "b.svc"));
  EXPECT_EQ(facts->not_before, kStart);
  EXPECT_EQ(facts->not_after, kEnd);
  EXPECT_EQ(facts_of(issuer)->common_name, "authority");
}

TEST(Certificate, NamesItsIssuer) {
  const Certified one = authority(), other = authority();
  const auto made = issue(one, {"attach", {"a.svc"}, kStart, kEnd});
  EXPECT_TRUE(is_issued_by(made->certificate, one.certificate));
  EXPECT_FALSE(is_issued_by(made->certificate, other.certificate)) << "of the same name";
  EXPECT_FALSE(is_issued_by("nothing", one.certificate));
  EXPECT_NE(issue(one, {"attach", {"a.svc"}, kStart, kEnd})->key, made->key);
}

TEST(Certificate, IsNotMadeFromNonsense) {
  const Certified issuer = authority();
  const auto leaf = issue(issuer, {"attach", {"a.svc"}, kStart, kEnd});
  EXPECT_THAT(issue(*leaf, {"x", {"a.svc"}, kStart, kEnd}).error().message,
              HasSubstr("is no authority"));
  EXPECT_FALSE(issue({issuer.certificate, leaf->key}, {"x", {"a.svc"}, kStart, kEnd}));
  EXPECT_FALSE(issue({issuer.certificate, "nothing"}, {"x", {"a.svc"}, kStart, kEnd}));
  for (const char* name : {"", "a b", "a,DNS:evil", "a\n", "*", "a.*.b", ".a", "-a"})
    EXPECT_THAT(issue(issuer, {"x", {name}, kStart, kEnd}).error().message,
                HasSubstr("neither a host name nor an IP address"))
        << name;
}

TEST(Certificate, HasNamesInTheFormThatWeCompare) {
  EXPECT_EQ(as_server_name("*.a.svc"), "*.a.svc");
  EXPECT_EQ(as_server_name("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(as_server_name("FD00:0::7"), "fd00::7");
  EXPECT_EQ(as_server_name("a.svc:443"), std::nullopt);
  EXPECT_EQ(as_server_name(""), std::nullopt);
  const auto leaf = issue(authority(), {"attach", {"FD00:0::7"}, kStart, kEnd});
  EXPECT_THAT(facts_of(*leaf)->names, ElementsAre("fd00::7"));
}

TEST(Certificate, IsForAllHostsOfADomain) {
  const auto made = issue(authority(), {"x", {"*.a.svc"}, kStart, kEnd});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(facts_of(*made)->names, testing::ElementsAre("*.a.svc"));
}

TEST(HostName, IsLettersDigitsDotsAndHyphens) {
  for (const char* name : {"a", "10.0.0.1", "a-b.Example.dev"})
    EXPECT_TRUE(is_host_name(name)) << name;
  for (const char* name : {"", ".a", "-a", "*.a", "a_b", "a b", "a/b", "a:1", "a\n"})
    EXPECT_FALSE(is_host_name(name)) << name;
  EXPECT_TRUE(is_host_name(std::string(253, 'a')));
  EXPECT_FALSE(is_host_name(std::string(254, 'a')));
}

TEST(Certificate, IsReadWithItsKeyOnly) {
  const Certified one = authority(), other = authority();
  EXPECT_EQ(facts_of({one.certificate, other.key}).error().message,
            "the key is not the certificate's");
  EXPECT_EQ(facts_of({one.certificate, ""}).error().message,
            "the certificate's key is no key in PEM");
  EXPECT_EQ(facts_of({"", one.key}).error().message, "not a certificate in PEM");
}

TEST(Certificate, IsFoundInABundle) {
  const Certified one = authority("one"), two = authority("two");
  const auto found =
      certificates_in("a remark\n" + one.certificate + "another\n" + two.certificate + "the end\n");
  EXPECT_THAT(found, ElementsAre(one.certificate, two.certificate));
  EXPECT_THAT(certificates_in("nothing"), ElementsAre());
}

}  // namespace
}  // namespace base
