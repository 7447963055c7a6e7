#include "cli/line/options.h"

#include <gtest/gtest.h>

namespace cli {
namespace {

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
