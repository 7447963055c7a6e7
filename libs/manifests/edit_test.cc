#include "libs/manifests/edit.h"

#include <gmock/gmock.h>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"

namespace manifests {
namespace {

namespace fs = std::filesystem;
using base::Json;

base::Result<std::string> set_state(const char* text, const Json& value) {
  return edit_scalar(text, 0, {"spec", "desiredState"}, value);
}

TEST(EditScalar, ChangesOneValueAndNothingElse) {
  struct {
    const char* name;
    const char* before;
    Json value;
    const char* after;
  } const kCases[] = {
      {"plain, with comments", "# head\nspec:\n  # about\n  desiredState: Running # now\n  z: 1\n",
       "Paused", "# head\nspec:\n  # about\n  desiredState: Paused # now\n  z: 1\n"},
      {"double quotes", "spec:\n  desiredState: \"Run\\\"ning\"  # x\n", "Paused",
       "spec:\n  desiredState: \"Paused\"  # x\n"},
      {"single quotes", "spec: {desiredState: 'it''s', b: 2}\n", "Paused",
       "spec: {desiredState: \"Paused\", b: 2}\n"},
      {"flow", "spec: {desiredState: Running, b: 2}\n", "Paused",
       "spec: {desiredState: Paused, b: 2}\n"},
      {"flow, last", "spec: {b: 2, desiredState: Running}\n", "Paused",
       "spec: {b: 2, desiredState: Paused}\n"},
      {"json", "{\"spec\":{\"desiredState\":\"Running\"}}", "Paused",
       "{\"spec\":{\"desiredState\":\"Paused\"}}"},
      {"no newline at the end", "spec:\n  desiredState: Running", "Paused",
       "spec:\n  desiredState: Paused"},
      {"windows lines", "spec:\r\n  desiredState: Running\r\n  a: 1\r\n", "Paused",
       "spec:\r\n  desiredState: Paused\r\n  a: 1\r\n"},
      {"a word YAML would read otherwise", "spec:\n  desiredState: Running\n", "yes",
       "spec:\n  desiredState: \"yes\"\n"},
      {"text with a colon", "spec:\n  desiredState: Running\n", "a: b",
       "spec:\n  desiredState: \"a: b\"\n"},
      {"number", "spec:\n  desiredState: Running\n", 7, "spec:\n  desiredState: 7\n"},
      {"letters of two bytes before it", "a: \"äöü\"\nspec: {x: ä, desiredState: Running}\n",
       "Paused", "a: \"äöü\"\nspec: {x: ä, desiredState: Paused}\n"},
      {"the same value", "spec:\n  desiredState: Running # x\n", "Running",
       "spec:\n  desiredState: Running # x\n"},
      {"added", "spec:\n  # first\n  template:\n    id: base\n", "Paused",
       "spec:\n  # first\n  desiredState: Paused\n  template:\n    id: base\n"},
      {"added, windows lines", "spec:\r\n  a: 1\r\n", "Paused",
       "spec:\r\n  desiredState: Paused\r\n  a: 1\r\n"},
  };
  for (const auto& each : kCases) {
    SCOPED_TRACE(each.name);
    const auto edited = set_state(each.before, each.value);
    ASSERT_TRUE(edited) << edited.error().message;
    EXPECT_EQ(*edited, each.after);
  }
}

TEST(EditScalar, SaysWhyItCannot) {
  struct {
    const char* name;
    const char* text;
    std::string why;
  } const kCases[] = {
      {"alias", "x: &a Running\nspec:\n  desiredState: *a\n", "it is an alias"},
      {"anchor", "spec:\n  desiredState: &a Running\n  other: *a\n", "it has an anchor or a tag"},
      {"tag", "spec:\n  desiredState: !!str Running\n", "it has an anchor or a tag"},
      {"block text", "spec:\n  desiredState: |\n    Running\n", "it is a block of text"},
      {"several lines", "spec:\n  desiredState: \"Run\n    ning\"\n", "it stands on several lines"},
      {"plain over several lines", "spec:\n  desiredState: Run\n    ning\n",
       "the text around it would read differently"},
      {"merge", "b: &b {desiredState: Running}\nspec:\n  <<: *b\n",
       "it comes from an alias or a merge"},
      {"inside an alias", "b: &b {desiredState: Running}\nspec: *b\n",
       "it comes from an alias or a merge"},
      {"mapping", "spec:\n  desiredState: {a: 1}\n", "it is no single value"},
      {"nothing to add to", "a: 1\n", "there is no mapping to add it to"},
      {"flow mapping to add to", "spec: {a: 1}\n",
       "the mapping does not stand on lines of its own"},
      {"empty mapping to add to", "spec: {}\n", "the mapping is empty"},
  };
  for (const auto& each : kCases) {
    SCOPED_TRACE(each.name);
    const auto edited = set_state(each.text, "Paused");
    ASSERT_FALSE(edited) << *edited;
    EXPECT_EQ(edited.error().message,
              "cannot edit spec.desiredState in place: " + each.why + "; edit the file by hand");
  }
  EXPECT_EQ(set_state("spec:\n  desiredState: A\n  desiredState: B\n", "Paused").error().message,
            "the manifest:3:3: spec.desiredState: the key stands twice in one mapping; keep one of "
            "the two");
}

TEST(EditScalar, FindsItsDocumentAndListItems) {
  const char* text =
      "a: 1\n---\n# two\nenv:\n- name: A\n  value: x\n- name: B\n  value: y1 # keep\n";
  const auto edited = edit_scalar(text, 1, {"env", "1", "value"}, "z2");
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_EQ(*edited,
            "a: 1\n---\n# two\nenv:\n- name: A\n  value: x\n- name: B\n  value: z2 # keep\n");
  EXPECT_FALSE(edit_scalar(text, 2, {"a"}, 2));
  EXPECT_FALSE(edit_scalar(text, 0, {}, 2));
  EXPECT_FALSE(edit_scalar(text, 0, {"a"}, Json::array()));
}

fs::perms mode_of(const fs::path& path) { return fs::status(path).permissions(); }

TEST(EditScalarInFile, KeepsModeAndLink) {
  const base::TemporaryFolder folder;
  ASSERT_TRUE(base::write_file_atomically(folder.path() / "real.yaml", "a: 1 # one\n", 0640));
  fs::create_symlink("real.yaml", folder.path() / "link.yaml");
  const auto edited = edit_scalar_in_file(folder.path() / "link.yaml", 0, {"a"}, 2);
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link.yaml"));
  EXPECT_EQ(*base::read_file(folder.path() / "real.yaml"), "a: 2 # one\n");
  EXPECT_EQ(mode_of(folder.path() / "real.yaml"), fs::perms(0640));
}

constexpr const char* kSandbox =
    "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata:\n  name: a\n"
    "spec:\n  template:\n    id: base\n";

TEST(ApplyManifest, CopiesWhatIsValidAndRefusesTheRest) {
  const base::TemporaryFolder folder;
  const auto apply = [&](const std::string& name, const std::string& text) {
    const auto applied = apply_manifest(folder.path(), name, text);
    return applied ? std::string() : applied.error().message;
  };
  EXPECT_EQ(apply("a.yaml", kSandbox), "");
  EXPECT_EQ(*base::read_file(folder.path() / "a.yaml"), kSandbox);
  EXPECT_EQ(apply("a.yaml", std::string("# again\n") + kSandbox), "");
  EXPECT_EQ(apply("b.yaml", kSandbox),
            "b.yaml:1: Sandbox default/a stands in a.yaml already; change it there");
  std::string other = kSandbox;
  other.replace(other.find("base"), 4, "other");
  EXPECT_EQ(apply("a.yaml", other),
            "a.yaml:7:5: spec.template: template cannot be changed; put the old value back, or "
            "declare another object");
  EXPECT_EQ(apply("c.yaml", "a: 1\n"),
            "c.yaml:1:1: apiVersion: is missing; add it: sandfleet.dev/v1alpha1\n"
            "c.yaml:1:1: kind: is missing; add it: Sandbox, SandboxProvider or Secret");
  EXPECT_EQ(apply("../c.yaml", kSandbox),
            "\"../c.yaml\" is no name of a manifest; it must end in .yaml, .yml or .json");
  EXPECT_FALSE(fs::exists(folder.path() / "b.yaml"));
  EXPECT_FALSE(fs::exists(folder.path() / "c.yaml"));
}

TEST(ApplyManifest, KeepsASecretFromOthers) {
  const base::TemporaryFolder folder;
  ASSERT_TRUE(
      apply_manifest(folder.path(), "s.yaml",
                     "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\nstringData: {a: b}\n"));
  EXPECT_EQ(mode_of(folder.path() / "s.yaml"), fs::perms(0600));
}

}  // namespace
}  // namespace manifests
