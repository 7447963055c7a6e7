#include "executor/subprocess/request.h"

#include <gtest/gtest.h>

#include <functional>

namespace executor {
namespace {

SpawnRequest good() {
  return {.id = "0123456789abcdef", .argv = {"true"}, .cwd = "/", .grace_ms = 3000};
}

struct Case {
  const char* name;
  std::function<void(SpawnRequest&)> change;
  bool fits;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

const std::string kZero("a\0b", 3);
const Case kCases[] = {
    {"as_it_is", [](SpawnRequest&) {}, true},
    {"no_argv", [](SpawnRequest& it) { it.argv.clear(); }, false},
    {"no_program", [](SpawnRequest& it) { it.argv = {"", "a"}; }, false},
    {"empty_argument", [](SpawnRequest& it) { it.argv = {"echo", ""}; }, true},
    {"zero_byte_in_argument", [](SpawnRequest& it) { it.argv.push_back(kZero); }, false},
    {"bytes_that_are_no_text", [](SpawnRequest& it) { it.argv.push_back("\xff\xfe"); }, true},
    {"most_arguments", [](SpawnRequest& it) { it.argv.resize(kArgumentsMax, "a"); }, true},
    {"too_many_arguments", [](SpawnRequest& it) { it.argv.resize(kArgumentsMax + 1, "a"); }, false},
    {"longest_argument",
     [](SpawnRequest& it) { it.argv.push_back(std::string(kArgumentBytesMax, 'a')); }, true},
    {"too_long_argument",
     [](SpawnRequest& it) { it.argv.push_back(std::string(kArgumentBytesMax + 1, 'a')); }, false},
    {"too_long_together",
     [](SpawnRequest& it) { it.argv.resize(5, std::string(kArgumentBytesMax, 'a')); }, false},
    {"too_long_with_variables",
     [](SpawnRequest& it) {
       it.argv.resize(5, std::string(120'000, 'a'));
       it.env = {{"A", std::string(60'000, 'a')}};
     },
     false},
    {"no_grace", [](SpawnRequest& it) { it.grace_ms = 0; }, false},
    {"negative_grace", [](SpawnRequest& it) { it.grace_ms = -1; }, false},
    {"shortest_grace", [](SpawnRequest& it) { it.grace_ms = 1; }, true},
    {"longest_grace", [](SpawnRequest& it) { it.grace_ms = kGraceMsMax; }, true},
    {"too_long_grace", [](SpawnRequest& it) { it.grace_ms = kGraceMsMax + 1; }, false},
    {"relative_folder", [](SpawnRequest& it) { it.cwd = "work"; }, false},
    {"no_folder", [](SpawnRequest& it) { it.cwd = ""; }, false},
    {"zero_byte_in_folder", [](SpawnRequest& it) { it.cwd = "/" + kZero; }, false},
    {"too_long_folder", [](SpawnRequest& it) { it.cwd = "/" + std::string(kPathBytesMax, 'a'); },
     false},
    {"short_handle", [](SpawnRequest& it) { it.id = "0123456789abcde"; }, false},
    {"longest_handle", [](SpawnRequest& it) { it.id = std::string(kHandleBytesMax, '_'); }, true},
    {"long_handle", [](SpawnRequest& it) { it.id = std::string(kHandleBytesMax + 1, 'a'); }, false},
    {"handle_with_a_slash", [](SpawnRequest& it) { it.id = "0123456789abc/../"; }, false},
    {"collects_most", [](SpawnRequest& it) { it.stdout_mode = Collect{kCollectBytesMax}; }, true},
    {"collects_too_much", [](SpawnRequest& it) { it.stdout_mode = Collect{kCollectBytesMax + 1}; },
     false},
    {"collects_nothing", [](SpawnRequest& it) { it.stderr_mode = Collect{0}; }, true},
    {"collects_less_than_nothing", [](SpawnRequest& it) { it.stderr_mode = Collect{-1}; }, false},
    {"spills_less_than_nothing", [](SpawnRequest& it) { it.stderr_mode = Collect{1, -1}; }, false},
    {"most_data", [](SpawnRequest& it) { it.stdin_mode = Data{std::string(kDataBytesMax, 'a')}; },
     true},
    {"too_much_data",
     [](SpawnRequest& it) { it.stdin_mode = Data{std::string(kDataBytesMax + 1, 'a')}; }, false},
    {"variable_without_name", [](SpawnRequest& it) { it.env = {{"", "a"}}; }, false},
    {"variable_with_equals", [](SpawnRequest& it) { it.env = {{"A=B", "a"}}; }, false},
    {"variable_with_zero_byte", [](SpawnRequest& it) { it.env = {{kZero, "a"}}; }, false},
    {"value_with_zero_byte", [](SpawnRequest& it) { it.env = {{"A", kZero}}; }, false},
    {"removed_variable", [](SpawnRequest& it) { it.env = {{"A", std::nullopt}}; }, true},
    {"too_many_variables", [](SpawnRequest& it) { it.env.resize(kVariablesMax + 1, {"A", "a"}); },
     false},
};

class SpawnRequests : public ::testing::TestWithParam<Case> {};
// covers: P1
TEST_P(SpawnRequests, IsRefusedBeforeAnythingIsDone) {
  SpawnRequest request = good();
  GetParam().change(request);
  const auto checked = check(request);
  EXPECT_EQ(checked.ok(), GetParam().fits);
  if (!checked) EXPECT_EQ(checked.error().fault, ProcessFault::kInvalid);
}
INSTANTIATE_TEST_SUITE_P(Cases, SpawnRequests, ::testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace executor
