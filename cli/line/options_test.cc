#include "cli/line/options.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

TEST(PathCalled, IsWhatFindsItAgain) {
  EXPECT_EQ(path_called("sandfleet"), "") << "PATH does";
  EXPECT_EQ(path_called("./sandfleet"), "./sandfleet");
  EXPECT_EQ(path_called("/opt/it's/sandfleet"), "/opt/it's/sandfleet");
  EXPECT_EQ(path_called("/usr/bin/kubectl-sandfleet"), "") << "kubectl does";
}

struct WordsCase {
  std::vector<std::string> words;
  Subject subject;
  std::vector<std::string> names;
};
TEST(Words, MayNameTheKindOrLeaveItOut) {
  const WordsCase cases[] = {
      {{}, Subject::kSandboxes, {}},
      {{"sfb"}, Subject::kSandboxes, {}},
      {{"sandboxes", "a", "b"}, Subject::kSandboxes, {"a", "b"}},
      {{"a", "sfb"}, Subject::kSandboxes, {"a", "sfb"}},
      {{"sandbox/a", "sfb/b"}, Subject::kSandboxes, {"a", "b"}},
      {{"SFP"}, Subject::kProviders, {}},
      {{"sandboxproviders.sandfleet.dev", "default"}, Subject::kProviders, {"default"}},
  };
  for (const auto& each : cases) {
    const Words read = read_words(each.words);
    EXPECT_EQ(read.subject, each.subject);
    EXPECT_EQ(read.names, each.names);
  }
}

}  // namespace
}  // namespace cli
