#include "local_e2b/control/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace local_e2b {
namespace {

using base::Json;
using ::testing::HasSubstr;

constexpr std::int64_t kDay = 86'400;

Json json(const char* text) { return *base::parse_json(text); }

struct BadCase {
  const char* body;
  int status;
  const char* message;
};

TEST(CreateRequest, HasTheDefaultsOfItsVersion) {
  const auto v1 = parse_create(json(R"({"templateID":"base"})"), Version::kV1, kDay);
  const auto v2 = parse_create(json(R"({"templateID":" team/Base:default "})"), Version::kV2, kDay);
  ASSERT_TRUE(v1 && v2);
  EXPECT_EQ(v1->timeout_seconds, 15);
  EXPECT_EQ(v2->timeout_seconds, 300);
  EXPECT_EQ(v2->template_id, "base");
  EXPECT_FALSE(v2->auto_pause);
  EXPECT_TRUE(v2->allow_public_traffic);
}

TEST(CreateRequest, ReadsEveryField) {
  const auto request = parse_create(json(R"({"templateID":"base-executor","timeout":60,
      "autoPause":true,"autoResume":{"enabled":true},"allow_internet_access":false,"unknown":1,
      "network":{"allowPublicTraffic":false,"denyOut":["10.0.0.0/8"]},
      "metadata":{"k":"v"},"envVars":{"A":"1"},"secure":true,"autoPauseMemory":true})"),
                                    Version::kV2, kDay);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->template_id, "base-executor");
  EXPECT_EQ(request->timeout_seconds, 60);
  EXPECT_TRUE(request->auto_pause);
  EXPECT_TRUE(request->auto_resume);
  EXPECT_EQ(request->allow_internet_access, false);
  EXPECT_FALSE(request->allow_public_traffic);
  EXPECT_EQ(request->metadata.at("k"), "v");
  EXPECT_EQ(request->env.at("A"), "1");
}

TEST(CreateRequest, SaysWhatIsWrong) {
  const BadCase cases[] = {
      {"[]", 400, "validation error: the body must be a JSON object"},
      {"{}", 400, "validation error: templateID is required"},
      {R"({"templateID":7})", 400, "validation error: templateID is required"},
      {R"({"templateID":"other"})", 404, "template 'other' not found"},
      {R"({"templateID":"base:v2"})", 404, "not found"},
      {R"({"templateID":"base","timeout":0})", 400, "timeout must be at least 1"},
      {R"({"templateID":"base","timeout":-5})", 400, "timeout must be at least 1"},
      {R"({"templateID":"base","timeout":1.5})", 400, "timeout must be an integer"},
      {R"({"templateID":"base","timeout":99999999999})", 400, "32-bit"},
      {R"({"templateID":"base","timeout":86401})", 400, "Timeout cannot be greater than 86400"},
      {R"({"templateID":"base","autoPause":"yes"})", 400, "autoPause must be true or false"},
      {R"({"templateID":"base","autoResume":true})", 400, "autoResume must be an object"},
      {R"({"templateID":"base","autoPauseMemory":false})", 400, "needs autoPause"},
      {R"({"templateID":"base","autoPause":true,"autoPauseMemory":false})", 400, "not supported"},
      {R"({"templateID":"base","metadata":{"a":1}})", 400, "metadata.a must be a string"},
      {R"({"templateID":"base","metadata":["a"]})", 400, "metadata must be an object"},
      {R"({"templateID":"base","envVars":7})", 400, "envVars must be an object"},
      {R"({"templateID":"base","envVars":{"":"1"}})", 400, "envVars has an empty name"},
      {R"({"templateID":"base","envVars":{"A=B":"1"}})", 400, "a name with '='"},
      {R"({"templateID":"base","envVars":{"A\u0000":"1"}})", 400, "a name with '=' or NUL"},
      {R"({"templateID":"base","envVars":{"A":"\u0000"}})", 400, "envVars.A has a NUL in it"},
      {R"({"templateID":"base","network":7})", 400, "network must be an object"},
      {R"({"templateID":"base","network":{"egressProxy":{}}})", 403, "egressProxy"},
      {R"({"templateID":"base","volumeMounts":[{"name":"v","path":"/v"}]})", 400, "volumeMounts"},
  };
  for (const auto& each : cases) {
    const auto request = parse_create(json(each.body), Version::kV2, kDay);
    ASSERT_FALSE(request) << each.body;
    EXPECT_EQ(request.error().status, each.status) << each.body;
    EXPECT_THAT(request.error().message, HasSubstr(each.message)) << each.body;
  }
}

TEST(CreateRequest, BoundsItsMetadataAndEnvironment) {
  Json pairs = Json::object();
  for (std::size_t i = 0; i <= kMetadataPairsMax; ++i) pairs["k" + std::to_string(i)] = "";
  Json many = {{"templateID", "base"}, {"metadata", pairs}};
  EXPECT_THAT(parse_create(many, Version::kV2, kDay).error().message, HasSubstr("more than 128"));
  Json large = {{"templateID", "base"}, {"metadata", {{"k", std::string(kMetadataBytesMax, 'x')}}}};
  EXPECT_THAT(parse_create(large, Version::kV2, kDay).error().message, HasSubstr("larger than"));
  Json env = {{"templateID", "base"}, {"envVars", {{"k", std::string(kEnvBytesMax, 'x')}}}};
  EXPECT_THAT(parse_create(env, Version::kV2, kDay).error().message, HasSubstr("envVars"));
}

TEST(ConnectRequest, DiffersByVersion) {
  EXPECT_EQ(parse_connect(json("{}"), Version::kV2, kDay)->timeout_seconds, 300);
  for (const char* without : {"{}", R"({"timeout":null})"})
    EXPECT_EQ(parse_connect(json(without), Version::kV1, kDay).error().status, 400) << without;
  EXPECT_EQ(parse_connect(json(R"({"timeout":0})"), Version::kV2, kDay).error().status, 400);
  EXPECT_EQ(parse_connect(json(R"({"timeout":0})"), Version::kV1, kDay)->timeout_seconds, 0);
  EXPECT_EQ(parse_connect(json(R"({"timeout":90000})"), Version::kV1, kDay).error().status, 400);
  EXPECT_EQ(parse_connect(json(R"({"memory":false})"), Version::kV2, kDay).error().status, 400);
  EXPECT_EQ(parse_resume(json("{}"), kDay)->timeout_seconds, 15);
}

TEST(LeaseRequests, ReadSeconds) {
  EXPECT_EQ(*parse_timeout(json(R"({"timeout":0})")), 0);
  EXPECT_EQ(parse_timeout(json("{}")).error().status, 400);
  EXPECT_EQ(parse_timeout(json(R"({"timeout":-1})")).error().status, 400);
  EXPECT_EQ(*parse_refresh(json("{}")), 15);
  EXPECT_EQ(*parse_refresh(json(R"({"duration":3})")), 15);
  EXPECT_EQ(*parse_refresh(json(R"({"duration":3600})")), 3600);
  EXPECT_EQ(parse_refresh(json(R"({"duration":3601})")).error().status, 400);
}

TEST(PauseRequest, RefusesToDropMemory) {
  EXPECT_TRUE(parse_pause(json("{}")));
  EXPECT_TRUE(parse_pause(json(R"({"memory":true,"requireHealthyGuest":true})")));
  EXPECT_THAT(parse_pause(json(R"({"memory":false})")).error().message, HasSubstr("not supported"));
}

TEST(SandboxId, DropsAnOldClientId) {
  EXPECT_EQ(*parse_sandbox_id("iabc0-6532622b"), "iabc0");
  for (const char* bad : {"", "-", "a-b-c", "IABC", "a_b", "../x", "-x"})
    EXPECT_EQ(parse_sandbox_id(bad).error().message, "Invalid sandbox ID") << bad;
  EXPECT_TRUE(parse_sandbox_id(std::string(64, 'a')));
  EXPECT_FALSE(parse_sandbox_id(std::string(65, 'a')));
}

}  // namespace
}  // namespace local_e2b
