#include "executor/envd/settings.h"

#include <gtest/gtest.h>

namespace executor {
namespace {

using base::Json;

TEST(EnvdSettings, TakesTheFirstTokenAndThenInsistsOnIt) {
  const auto first = apply_init({}, Json{{"accessToken", "t1"}});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->access_token, "t1");
  EXPECT_TRUE(apply_init(*first, Json{{"accessToken", "t1"}}).ok());
  EXPECT_EQ(apply_init(*first, Json{{"accessToken", "t2"}}).error().code, base::ErrorCode::kDenied);
  EXPECT_EQ(apply_init(*first, Json::object()).error().code, base::ErrorCode::kDenied);
}

TEST(EnvdSettings, ReplacesVariablesAsAWhole) {
  const auto first = apply_init({}, Json{{"envVars", {{"A", "1"}, {"B", "2"}}}});
  const auto second = apply_init(*first, Json{{"envVars", {{"C", "3"}}}});
  EXPECT_EQ(second->env, (std::map<std::string, std::string>{{"C", "3"}}));
  EXPECT_EQ(apply_init(*second, Json{{"envVars", nullptr}})->env, second->env);
}

TEST(EnvdSettings, IgnoresWhatIsNotNewer) {
  const auto at = [](const char* time, const char* user) {
    return Json{{"timestamp", time}, {"defaultUser", user}};
  };
  const auto first = apply_init({}, at("2026-11-29T10:00:00Z", "one"));
  EXPECT_EQ(apply_init(*first, at("2026-11-29T10:00:00Z", "two"))->default_user, "one");
  EXPECT_EQ(apply_init(*first, at("2026-11-29T09:00:00Z", "two"))->default_user, "one");
  EXPECT_EQ(apply_init(*first, at("2026-11-29T10:00:01Z", "two"))->default_user, "two");
  EXPECT_EQ(apply_init(*first, Json{{"defaultUser", "three"}})->default_user, "three");
}

TEST(EnvdSettings, NamesTheFieldThatIsWrong) {
  const std::pair<std::string, Json> cases[] = {{"accessToken", {{"accessToken", 1}}},
                                                {"envVars", {{"envVars", {{"A", 1}}}}},
                                                {"envVars", {{"envVars", "A=1"}}},
                                                {"timestamp", {{"timestamp", "now"}}},
                                                {"defaultUser", {{"defaultUser", true}}}};
  for (const auto& [field, body] : cases) {
    const auto applied = apply_init({}, body);
    ASSERT_FALSE(applied.ok()) << field;
    EXPECT_TRUE(applied.error().message.starts_with("field '" + field + "'"));
  }
}

TEST(EnvdSettings, SurviveTheWayThroughJson) {
  const auto settings = apply_init({}, Json{{"accessToken", "t"},
                                            {"envVars", {{"A", "1"}}},
                                            {"defaultUser", "user"},
                                            {"defaultWorkdir", "/work"},
                                            {"timestamp", "2026-11-29T10:00:00Z"}});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(to_json(settings_from_json(to_json(*settings))), to_json(*settings));
}

TEST(EnvdSettings, LaterLayersOfVariablesWin) {
  const std::map<std::string, std::string> low{{"A", "1"}, {"B", "1"}}, high{{"B", "2"}};
  EXPECT_EQ(layered({&low, &high}), (std::map<std::string, std::string>{{"A", "1"}, {"B", "2"}}));
}

}  // namespace
}  // namespace executor
