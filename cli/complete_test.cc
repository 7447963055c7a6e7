#include "cli/complete.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cli {
namespace {

using testing::Contains;
using testing::Not;

std::vector<std::string> names_of(const Options& options, Subject subject) {
  if (subject == Subject::kProviders) return {"default"};
  if (options.space == "team") return {"theirs"};
  return {"demo", "dream", "other"};
}

struct CompleteCase {
  std::vector<std::string> words;
  Completion next;
};

TEST(Complete, OffersWhatMayComeNext) {
  const CompleteCase cases[] = {
      {{"d"}, {{"describe", "delete"}}},
      {{"no-verb", ""}, {}},
      {{"get", ""}, {{"demo", "dream", "other"}}},
      {{"get", "d"}, {{"demo", "dream"}}},
      {{"get", "demo", "d"}, {{"dream"}}},
      {{"get", "sfp", ""}, {{"default"}}},
      {{"get", "-n", "team", ""}, {{"theirs"}}},
      {{"-n", "team", "get", ""}, {{"theirs"}}},
      {{"get", "-n", ""}, {}},
      {{"get", "-o", ""}, {{"table", "wide", "json", "yaml"}}},
      {{"get", "--output", "j"}, {{"json"}}},
      {{"get", "-o", "xml", ""}, {}},
      {{"get", "--al"}, {{"--all-namespaces"}}},
      {{"get", "-A", "o"}, {{"other"}}},
      {{"delete", "--policy", "K"}, {{"Kill"}}},
      {{"apply", ""}, {}},
      {{"apply", "-f", ""}, {.files = true}},
      {{"--kubeconfig", ""}, {.files = true}},
      {{"exec", ""}, {{"demo", "dream", "other"}}},
      {{"exec", "-n", "team", ""}, {{"theirs"}}},
      {{"exec", "demo", ""}, {}},
      {{"exec", "demo", "--", "l"}, {}},
      {{"exec", "--permission-mode", "R"}, {{"ReadOnly"}}},
      {{"exec", "--socket", ""}, {.files = true}},
      {{"ps", "o"}, {{"other"}}},
      {{"kill", "demo", ""}, {}},
  };
  for (const auto& each : cases) {
    testing::internal::CaptureStderr();
    const auto found = complete(each.words, names_of);
    testing::internal::GetCapturedStderr();
    EXPECT_EQ(found.choices, each.next.choices) << testing::PrintToString(each.words);
    EXPECT_EQ(found.files, each.next.files) << testing::PrintToString(each.words);
  }
  const auto nothing = complete({}, names_of);
  EXPECT_THAT(nothing.choices, Contains("events"));
  EXPECT_THAT(complete({"apply", "--"}, names_of).choices, Contains("--force-conflicts"));
  EXPECT_THAT(complete({"get", "--"}, names_of).choices, Not(Contains("--force-conflicts")));
}

TEST(Complete, IsPrintedAsKubectlReadsIt) {
  EXPECT_EQ(to_text(Completion{{"a", "b"}}), "a\nb\n:4\n");
  EXPECT_EQ(to_text(Completion{.files = true}), ":0\n");
}

}  // namespace
}  // namespace cli
