#include "libs/manifests/reference.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "libs/base/files.h"

namespace manifests {
namespace {

std::string content_of(const char* path) {
  const auto content = base::read_file(std::filesystem::path(SANDFLEET_SOURCE) / path);
  return content ? *content : content.error().message;
}

constexpr const char* kCure = "run build/dev/bin/manifests_docs docs, and commit what it wrote";

TEST(Docs, OfTheApiSayWhatTheCrdsSay) {
  EXPECT_TRUE(content_of("docs/api.md") == api_page()) << "docs/api.md is stale; " << kCure;
}

TEST(Docs, OfConditionsListTheWholeCatalogue) {
  EXPECT_TRUE(content_of("docs/conditions.md") == conditions_page(content_of("libs/api/reasons.h")))
      << "docs/conditions.md is stale; " << kCure;
}

TEST(Docs, GiveEveryReasonAMeaning) {
  const std::string page = conditions_page(content_of("libs/api/reasons.h"));
  EXPECT_EQ(page.find("` |  |"), std::string::npos) << page;
}

TEST(Docs, ReadTheCatalogueAcrossLines) {
  const std::string page = conditions_page(
      "namespace condition {\ninline constexpr std::string_view kA = \"A\";  // One.\n"
      "}\nnamespace reason {\ninline constexpr std::string_view kB =\n    \"B\";\n");
  EXPECT_THAT(page,
              testing::HasSubstr("\n## Condition types\n\n| word | meaning |\n|---|---|\n"
                                 "| `A` | One. |\n\n## Reasons\n\n| word | meaning |\n|---|---|\n"
                                 "| `B` |  |\n"));
}

}  // namespace
}  // namespace manifests
