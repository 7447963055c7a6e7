#include "libs/manifests/edit.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"

namespace manifests {
namespace {

namespace fs = std::filesystem;
using base::Json;

struct EditCase {
  const char* name;
  const char* before;
  Json value;
  const char* after;  // Null: refused.
  const char* why = "";
};

TEST(EditScalar, ChangesOneValueAndNothingElse) {
  const EditCase kCases[] = {
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
      {"alias", "x: &a Running\nspec:\n  desiredState: *a\n", "Paused", nullptr,
       "cannot edit spec.desiredState in place: it is an alias; edit the file by hand"},
      {"anchor", "spec:\n  desiredState: &a Running\n  other: *a\n", "Paused", nullptr,
       "cannot edit spec.desiredState in place: it has an anchor or a tag; edit the file by hand"},
      {"tag", "spec:\n  desiredState: !!str Running\n", "Paused", nullptr,
       "cannot edit spec.desiredState in place: it has an anchor or a tag; edit the file by hand"},
      {"block text", "spec:\n  desiredState: |\n    Running\n", "Paused", nullptr,
       "cannot edit spec.desiredState in place: it is a block of text; edit the file by hand"},
      {"several lines", "spec:\n  desiredState: \"Run\n    ning\"\n", "Paused", nullptr,
       "cannot edit spec.desiredState in place: it stands on several lines; edit the file by hand"},
      {"plain over several lines", "spec:\n  desiredState: Run\n    ning\n", "Paused", nullptr,
       "cannot edit spec.desiredState in place: the text around it would read differently; edit "
       "the "
       "file by hand"},
      {"merge", "b: &b {desiredState: Running}\nspec:\n  <<: *b\n", "Paused", nullptr,
       "cannot edit spec.desiredState in place: it comes from an alias or a merge; edit the file "
       "by "
       "hand"},
      {"inside an alias", "b: &b {desiredState: Running}\nspec: *b\n", "Paused", nullptr,
       "cannot edit spec.desiredState in place: it comes from an alias or a merge; edit the file "
       "by "
       "hand"},
      {"mapping", "spec:\n  desiredState: {a: 1}\n", "Paused", nullptr,
       "cannot edit spec.desiredState in place: it is no single value; edit the file by hand"},
      {"nothing to add to", "a: 1\n", "Paused", nullptr,
       "cannot edit spec.desiredState in place: there is no mapping to add it to; edit the file by "
       "hand"},
      {"flow mapping to add to", "spec: {a: 1}\n", "Paused", nullptr,
       "cannot edit spec.desiredState in place: the mapping does not stand on lines of its own; "
       "edit "
       "the file by hand"},
      {"empty mapping to add to", "spec: {}\n", "Paused", nullptr,
       "cannot edit spec.desiredState in place: the mapping is empty; edit the file by hand"},
      {"twice", "spec:\n  desiredState: A\n  desiredState: B\n", "Paused", nullptr,
       "the manifest:3:3: spec.desiredState: the key stands twice in one mapping; keep one of the "
       "two"},
  };
  for (const EditCase& each : kCases) {
    SCOPED_TRACE(each.name);
    const auto edited = edit_scalar(each.before, 0, {"spec", "desiredState"}, each.value);
    if (each.after) {
      ASSERT_TRUE(edited) << edited.error().message;
      EXPECT_EQ(*edited, each.after);
    } else {
      ASSERT_FALSE(edited) << *edited;
      EXPECT_EQ(edited.error().message, each.why);
    }
  }
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

TEST(EditScalarInFile, KeepsModeAndLink) {
  const base::TemporaryFolder folder;
  ASSERT_TRUE(base::write_file_atomically(folder.path() / "real.yaml", "a: 1 # one\n", 0640));
  fs::create_symlink("real.yaml", folder.path() / "link.yaml");
  const auto edited = edit_scalar_in_file(folder.path() / "link.yaml", 0, {"a"}, 2);
  ASSERT_TRUE(edited) << edited.error().message;
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link.yaml"));
  EXPECT_EQ(*base::read_file(folder.path() / "real.yaml"), "a: 2 # one\n");
  struct stat found{};
  ASSERT_EQ(::stat((folder.path() / "real.yaml").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0640u);
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
  struct stat found{};
  ASSERT_EQ(::stat((folder.path() / "s.yaml").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
}

}  // namespace
}  // namespace manifests
