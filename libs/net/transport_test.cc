#include "libs/net/transport.h"

#include <gtest/gtest.h>

namespace net {
namespace {

TEST(Headers, AreFoundWithoutRegardToCase) {
  Headers headers{{"Content-Type", "a"}, {"content-type", "b"}};
  headers.add("X-Next-Token", "t");
  EXPECT_EQ(headers.find("CONTENT-TYPE"), "a");
  EXPECT_EQ(headers.find("x-next-token"), "t");
  EXPECT_EQ(headers.find("Date"), std::nullopt);
}

TEST(Describe, ShowsNoCredentialSignatureOrBody) {
  const std::string canary = "c4n4ry";
  Request request{"POST", "https://" + canary + ":" + canary + "@host/files?path=" + canary +
                              "&signature=v1_" + canary + "#" + canary};
  for (const char* name : {"X-API-Key", "authorization", "X-ACCESS-TOKEN",
                           "E2b-Traffic-Access-Token", "Proxy-Authorization", "Cookie"})
    request.headers.add(name, canary);
  request.headers.add("Accept", "application/json");
  request.body = canary;
  const std::string text = describe(request);
  EXPECT_EQ(text.find(canary), std::string::npos) << text;
  EXPECT_NE(text.find("POST https://host/files?path=<hidden>&signature=<hidden>"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Accept: application/json"), std::string::npos) << text;
  EXPECT_NE(text.find("body: 6 bytes"), std::string::npos) << text;
}

TEST(Tame, HidesSecretsAndStaysShortOnOneLine) {
  EXPECT_EQ(tame("key k1 of\nk1", "k1"), "key <hidden> of <hidden>");
  EXPECT_EQ(tame("k1"), "k1");
  EXPECT_EQ(tame(std::string(kTamedBytesMax, 'a')), std::string(kTamedBytesMax, 'a'));
  EXPECT_EQ(tame(std::string(kTamedBytesMax + 1, 'a')), std::string(kTamedBytesMax, 'a') + "...");
}

TEST(BaseUrl, LetsAPathFollow) {
  EXPECT_EQ(base_url("http://h/v1//"), "http://h/v1");
  EXPECT_EQ(base_url("http://h"), "http://h");
}

struct Case {
  const char* name;
  Request request;
  bool good;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Objection : public testing::TestWithParam<Case> {};

TEST_P(Objection, IsToWhatCouldSmuggleALine) {
  const auto objection = objection_to(GetParam().request);
  EXPECT_EQ(!objection, GetParam().good);
  if (objection) {
    EXPECT_FALSE(objection->sent);
    EXPECT_EQ(objection->code, base::ErrorCode::kInvalid);
  }
}

const Case kCases[] = {
    {"plain", {"GET", "http://h/"}, true},
    {"tls", {"PATCH", "HTTPS://h/x?y=%0A"}, true},
    {"empty_value", {"GET", "http://h/", {{"X-Empty", ""}}}, true},
    {"utf8_value", {"GET", "http://h/", {{"X-Name", "J\xc3\xbcrgen"}}}, true},
    {"no_scheme", {"GET", "h/x"}, false},
    {"file_scheme", {"GET", "file:///etc/passwd"}, false},
    {"line_in_url", {"GET", "http://h/\r\nX: y"}, false},
    {"blank_in_url", {"GET", "http://h/a b"}, false},
    {"line_in_method", {"GET\r\n", "http://h/"}, false},
    {"empty_method", {"", "http://h/"}, false},
    {"line_in_value", {"GET", "http://h/", {{"X-A", "a\r\nX-B: b"}}}, false},
    {"null_in_value", {"GET", "http://h/", {{"X-A", std::string("a\0b", 3)}}}, false},
    {"colon_in_name", {"GET", "http://h/", {{"X:A", "a"}}}, false},
    {"empty_name", {"GET", "http://h/", {{"", "a"}}}, false},
};
INSTANTIATE_TEST_SUITE_P(Transport, Objection, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace net
