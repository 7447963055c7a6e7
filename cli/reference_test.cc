#include "cli/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "cli/line/options.h"
#include "libs/base/files.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(Reference, SaysOfEachVerbWhatItsHelpDoes) {
  for (const auto& verb : verbs()) {
    testing::internal::CaptureStdout();
    Options options;
    base::Flags flags("sandfleet", kAbout);
    declare(flags, options, [](const Verb&) { return kFailed; });
    const char* words[] = {"sandfleet", verb.name.c_str(), "--help"};
    EXPECT_EQ(flags.parse(3, words), kDone);
    const std::string help = testing::internal::GetCapturedStdout();
    EXPECT_THAT(help, HasSubstr("Usage: sandfleet " + verb.name + " "));
    EXPECT_THAT(reference(),
                HasSubstr("## sandfleet " + verb.name + "\n\n```text\n" + help + "```\n"));
  }
}

// SANDFLEET_UPDATE_DOCS=1 writes the page anew.
TEST(Reference, IsThePageInTheDocumentation) {
  const fs::path page = fs::path(SANDFLEET_SOURCE) / "docs/cli.md";
  if (std::getenv("SANDFLEET_UPDATE_DOCS") != nullptr) {
    ASSERT_TRUE(base::write_file_atomically(page, reference(), 0644));
  }
  const auto written = base::read_file(page);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(*written, reference()) << "run this test with SANDFLEET_UPDATE_DOCS=1";
}

}  // namespace
}  // namespace cli
