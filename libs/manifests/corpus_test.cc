// One corpus of good and bad objects, each bad one with the exact errors that it gets. The files
// are in tests/corpus, and tests/kubernetes asks an API server about the same ones.
#include <gmock/gmock.h>

#include <filesystem>
#include <set>

#include "libs/api/provider.h"
#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/manifests/reading.h"
#include "libs/manifests/rules.h"
#include "libs/yaml/reader.h"

namespace manifests {
namespace {

namespace fs = std::filesystem;
using base::Json;

std::vector<fs::path> files_in(const char* folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(SANDFLEET_SOURCE) / folder))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::string content_of(const fs::path& path) {
  auto content = base::read_file(path);
  EXPECT_TRUE(content) << path;
  return content ? *content : "";
}

// What follows `mark` in the lines of a file.
std::string noted(const std::string& text, std::string_view mark) {
  std::vector<std::string> notes;
  for (const std::string& line : base::split(text, '\n'))
    if (line.starts_with(mark)) notes.push_back(line.substr(mark.size()));
  return base::join(notes, "\n");
}

std::string expected_errors(const std::string& text) { return noted(text, "# error: "); }

TEST(Corpus, GivesEachBadManifestItsExactErrors) {
  const auto files = files_in("tests/corpus/bad");
  EXPECT_GE(files.size(), 40u);
  for (const fs::path& path : files) {
    const std::string text = content_of(path);
    const Reading reading = read_manifest(text, "F", "default");
    EXPECT_EQ(to_text(reading.problems), expected_errors(text)) << path.filename();
    EXPECT_FALSE(reading.problems.empty()) << path.filename();
    EXPECT_TRUE(reading.objects.empty()) << path.filename();
    for (const yaml::Problem& problem : reading.problems) {
      EXPECT_GT(problem.line, 0) << path.filename();
      EXPECT_NE(problem.rule, "") << path.filename();
      EXPECT_NE(problem.cure, "") << path.filename();
    }
  }
}

// The specs of its objects, one a line.
std::string expect_good(const fs::path& path) {
  std::vector<std::string> specs;
  const Reading reading = read_manifest(content_of(path), "F", "default");
  EXPECT_TRUE(reading.problems.empty()) << path.filename() << "\n" << to_text(reading.problems);
  EXPECT_FALSE(reading.objects.empty()) << path.filename();
  for (const Declared& object : reading.objects) {
    if (object.kind == Kind::kSandbox) EXPECT_TRUE(api::sandbox_from_json(object.object));
    if (object.kind == Kind::kProvider) EXPECT_TRUE(api::provider_from_json(object.object));
    if (object.kind != Kind::kSecret) specs.push_back(base::to_text(object.object["spec"]));
  }
  return base::join(specs, "\n");
}

TEST(Corpus, TakesEveryGoodManifestForWhatItBecomes) {
  for (const fs::path& path : files_in("tests/corpus/good"))
    EXPECT_EQ(expect_good(path), noted(content_of(path), "# becomes: ")) << path.filename();
}

TEST(Corpus, TakesEveryExample) {
  const auto files = files_in("examples");
  EXPECT_GE(files.size(), 5u);
  for (const fs::path& path : files) expect_good(path);
}

TEST(Corpus, HoldsBackTheEditsThatNobodyMayMake) {
  for (const fs::path& path : files_in("tests/corpus/edits")) {
    const std::string text = content_of(path);
    const std::size_t cut = text.find("---\n");
    ASSERT_NE(cut, std::string::npos) << path.filename();
    const Reading before = read_manifest(text.substr(0, cut), "F", "default");
    const std::string edited = text.substr(cut);
    const Reading after = read_manifest(edited, "F", "default");
    ASSERT_EQ(before.objects.size(), 1u) << path.filename() << to_text(before.problems);
    ASSERT_EQ(after.objects.size(), 1u) << path.filename() << to_text(after.problems);
    const auto problems = check_edit(after.objects[0], before.objects[0].object, edited);
    EXPECT_EQ(to_text(problems), expected_errors(text)) << path.filename();
    EXPECT_EQ(problems.empty(), path.filename().string().starts_with("allowed")) << path.filename();
  }
}

void collect_messages(const Json& schema, const std::string& kind, std::set<std::string>& found) {
  if (!schema.is_structured()) return;
  if (schema.is_object() && schema.contains("x-kubernetes-validations"))
    for (const Json& rule : schema["x-kubernetes-validations"])
      found.insert(kind + ": " + rule["message"].get<std::string>());
  for (const Json& inner : schema) collect_messages(inner, kind, found);
}

TEST(Rules, AreTheSameInCelAndInCpp) {
  std::set<std::string> in_crds, in_cpp;
  for (const Kind kind : {Kind::kSandbox, Kind::kProvider})
    collect_messages(schema_of(kind).json(), std::string(to_word(kind)), in_crds);
  for (const Rule& rule : rules())
    in_cpp.insert(std::string(to_word(rule.kind)) + ": " + std::string(rule.message));
  EXPECT_EQ(in_crds, in_cpp);
}

TEST(Corpus, LetsTheStatusChangeOnlyAsItMay) {
  for (const fs::path& path : files_in("tests/corpus/status")) {
    const std::string text = content_of(path);
    const yaml::File file = yaml::read(text, "F");
    ASSERT_EQ(file.documents.size(), 2u) << path.filename();
    std::vector<std::string> problems;
    for (const Violation& each :
         check_rules(Kind::kSandbox, file.documents[1].json, &file.documents[0].json))
      problems.push_back(yaml::field_of(each.pointer).append(": ").append(each.rule));
    EXPECT_EQ(base::join(problems, "\n"), expected_errors(text)) << path.filename();
    EXPECT_EQ(problems.empty(), path.filename().string().starts_with("allowed")) << path.filename();
  }
}

// What a reviewer of an API asks of every field.
void check_field(const Json& field, const std::string& path) {
  const bool servers_own = path.ends_with(".metadata");  // It refuses a CRD that describes it.
  EXPECT_EQ(field.contains("description"), !servers_own) << path;
  const std::string type = base::text_at(field, "type").value_or("");
  EXPECT_NE(type, "") << path;
  EXPECT_FALSE(field.contains("x-kubernetes-preserve-unknown-fields")) << path;
  if (type == "string") EXPECT_TRUE(field.contains("maxLength")) << path;
  if (type == "array") EXPECT_TRUE(field.contains("maxItems")) << path;
  if (field.contains("additionalProperties")) EXPECT_TRUE(field.contains("maxProperties")) << path;
  if (const Json* properties = base::object_at(field, "properties"))
    for (const auto& [name, inner] : properties->items()) check_field(inner, path + "." + name);
  for (const char* inner : {"items", "additionalProperties"})
    if (field.contains(inner)) check_field(field[inner], path + "." + inner);
}

TEST(Crds, DescribeAndBoundEveryField) {
  for (const Kind kind : {Kind::kSandbox, Kind::kProvider})
    check_field(schema_of(kind).json(), std::string(to_word(kind)));
}

TEST(Crds, FillInTheDefaultsThatTheStructsHave) {
  const Reading reading = read_manifest(
      content_of(fs::path(SANDFLEET_SOURCE) / "tests/corpus/good/least.yaml"), "F", "x");
  ASSERT_EQ(reading.objects.size(), 1u);
  api::SandboxSpec expected;
  expected.template_id = "base";
  EXPECT_EQ(reading.objects[0].object["spec"], api::to_json(expected));
  EXPECT_EQ(reading.objects[0].key, (api::Key{"x", "web"}));
}

TEST(Patterns, NeverMeetTextLongerThanTheSchemaAllows) {
  const std::string head = "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata:\n  name: ";
  const std::string tail = "\nspec:\n  template:\n    id: ";
  for (const std::string& text : {head + "a" + tail + std::string(900'000, 'x'),
                                  head + std::string(900'000, 'a') + tail + "b"}) {
    const Reading reading = read_manifest(text, "F", "default");
    ASSERT_FALSE(reading.problems.empty());
    EXPECT_NE(to_text(reading.problems[0]).find("has 900000; shorten it"), std::string::npos);
  }
}

TEST(Secrets, AreDecodedAndNeverPrinted) {
  const Reading reading = read_manifest(
      content_of(fs::path(SANDFLEET_SOURCE) / "tests/corpus/good/secret.yaml"), "F", "default");
  ASSERT_EQ(reading.objects.size(), 1u);
  EXPECT_EQ(reading.objects[0].secret,
            (std::map<std::string, std::string>{{"a", "hello"}, {"b", "plain"}}));
  EXPECT_TRUE(reading.objects[0].object.is_null());
  for (const char* bad : {"secret-not-base64", "secret-value-number"}) {
    const fs::path path =
        fs::path(SANDFLEET_SOURCE) / "tests/corpus/bad" / (std::string(bad) + ".yaml");
    const std::string text = to_text(read_manifest(content_of(path), "F", "default").problems);
    EXPECT_EQ(text.find("123456789"), std::string::npos);
    EXPECT_EQ(text.find("not base64!"), std::string::npos);
  }
}

TEST(Suggestions, AreTheNearestWordOrNone) {
  EXPECT_EQ(nearest("keepalive", {"keepAlive", "env"}), "keepAlive");
  EXPECT_EQ(nearest("timeoutSecond", {"timeoutSeconds", "heartbeatSeconds"}), "timeoutSeconds");
  EXPECT_EQ(nearest("maxLifetime", {"shutdownTime", "maxLifetimeSeconds"}), "maxLifetimeSeconds");
  EXPECT_EQ(nearest("replicas", {"template", "env"}), "");
  EXPECT_EQ(nearest(std::string(1000, 'a'), {"aaaa"}), "");
}

TEST(Reading, TheDigestKnowsTheDocumentButNotItsLayout) {
  const std::string text =
      "apiVersion: sandfleet.dev/v1alpha1\nkind: Sandbox\nmetadata: {name: a}\n";
  const auto digest = [](const std::string& manifest) {
    const Reading reading = read_manifest(manifest, "F", "default");
    EXPECT_EQ(reading.objects.size(), 1u) << to_text(reading.problems);
    return reading.objects.empty() ? "" : reading.objects[0].digest;
  };
  const std::string first = digest(text + "spec: {template: {id: base}}\n");
  EXPECT_EQ(first, digest("# comment\n" + text + "spec:\n  template:\n    id: 'base'\n"));
  EXPECT_NE(first, digest(text + "spec: {template: {id: other}}\n"));
}

}  // namespace
}  // namespace manifests
