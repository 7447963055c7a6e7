#include "executor/envd/proto_json.h"

#include <gtest/gtest.h>

namespace executor {
namespace {

TEST(ProtoJson, ReadsBothSpellingsAndAllForms) {
  const base::Json json = {{"watcherId", "w"}, {"include_entry", true},    {"pid", "7"},
                           {"depth", 3},       {"stdin", "aGk="},          {"pty", "_-8"},
                           {"cwd", nullptr},   {"args", {"a", "b"}},       {"envs", {{"K", "V"}}},
                           {"signal", 15},     {"other", "SIGNAL_SIGKILL"}};
  const Message message(json);
  EXPECT_EQ(*message.text("watcherId"), "w");
  EXPECT_EQ(*message.boolean("includeEntry"), true);
  EXPECT_EQ(*message.number("pid"), 7u);
  EXPECT_EQ(*message.number("depth"), 3u);
  EXPECT_EQ(*message.bytes("stdin"), "hi");
  EXPECT_EQ(*message.bytes("pty"), "\xff\xef");
  EXPECT_EQ(*message.text("cwd"), std::nullopt);
  EXPECT_EQ(*message.text("absent"), std::nullopt);
  EXPECT_EQ(*message.texts("args"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ((*message.text_map("envs")).at("K"), "V");
  EXPECT_EQ(*message.enumerator("signal", {{"SIGNAL_SIGTERM", 15}}), 15);
  EXPECT_EQ(*message.enumerator("other", {{"SIGNAL_SIGKILL", 9}}), 9);
}

TEST(ProtoJson, NamesTheFieldThatIsWrong) {
  const base::Json json = {{"path", 1},    {"depth", -1},        {"recursive", "yes"},
                           {"stdin", "*"}, {"args", {1}},        {"envs", {{"K", 1}}},
                           {"process", 1}, {"signal", "SIGHUP"}, {"pid", 4294967296}};
  const Message message(json);
  const std::pair<std::string, RpcError> cases[] = {
      {"path", message.text("path").error()},
      {"depth", message.number("depth").error()},
      {"pid", message.number("pid").error()},
      {"recursive", message.boolean("recursive").error()},
      {"stdin", message.bytes("stdin").error()},
      {"args", message.texts("args").error()},
      {"envs", message.text_map("envs").error()},
      {"process", message.message("process").error()},
      {"signal", message.enumerator("signal", {}).error()},
  };
  for (const auto& [field, error] : cases) {
    EXPECT_EQ(error.rpc_code, RpcCode::kInvalidArgument) << field;
    EXPECT_TRUE(error.message.starts_with("field '" + field + "' must be ")) << error.message;
  }
  EXPECT_FALSE(parse_message("[]").ok());
  EXPECT_FALSE(parse_message("{").ok());
}

}  // namespace
}  // namespace executor
