#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/testing/http.h"
#include "executor/testing/program.h"
#include "libs/base/testing/eventually.h"
#include "libs/wire/admin.h"

namespace executor {
namespace {

TEST(StandInProgram, SaysWhereItAnswersAndEndsWithItsInput) {
  Program program({"stand-in"}, std::nullopt);
  ASSERT_TRUE(base::eventually([&] { return program.told().ends_with("\n"); })) << program.said();
  const auto told = base::Json::parse(program.told(), nullptr, false);
  ASSERT_TRUE(told.contains("ports")) << program.told();
  const int envd = told["ports"].value("49983", 0);
  const int executors = told["ports"].value(std::to_string(wire::kExecutorPort), 0);
  const auto health = request(envd, "GET", "/health");
  EXPECT_EQ(health.status, 204);
  EXPECT_EQ(health.fields.at("x-envd-version"), told.value("envdVersion", ""));
  EXPECT_EQ(request(executors, "GET", "/v1/health").status, 401);
  program.give("");
  EXPECT_EQ(program.wait_for_exit(), 0);
}

}  // namespace
}  // namespace executor
