#include "libs/yaml/reader.h"

#include <gmock/gmock.h>

namespace yaml {
namespace {

using base::Json;

Json only(const std::string& text) {
  const File file = read(text, "a.yaml");
  EXPECT_TRUE(file.problems.empty()) << to_text(file.problems);
  EXPECT_EQ(file.documents.size(), 1u);
  return file.documents.empty() ? Json() : file.documents[0].json;
}

TEST(Yaml, ReadsWordsAndNumbersAsKubernetesDoes) {
  const struct {
    const char* word;
    Json value;
  } kCases[] = {
      {"yes", true},
      {"Off", false},
      {"y", true},
      {"N", false},
      {"true", true},
      {"yeS", "yeS"},
      {"'yes'", "yes"},
      {"\"on\"", "on"},
      {"!!str yes", "yes"},
      {"0644", 420},
      {"0o17", 15},
      {"0x1F", 31},
      {"0b101", 5},
      {"-0x10", -16},
      {"+12", 12},
      {"1_000", 1000},
      {"089", 89},
      {"007", 7},
      {"1e3", 1000},
      {"300.0", 300},
      {"1.5", 1.5},
      {".5", 0.5},
      {"1.", 1},
      {"2026-11-29", "2026-11-29"},
      {"1:30", "1:30"},
      {"12:30:45", "12:30:45"},
      {"2026-11-29T10:00:00Z", "2026-11-29T10:00:00Z"},
      {"~", nullptr},
      {"null", nullptr},
      {"", nullptr},
      {"9223372036854775807", INT64_MAX},
      {"-9223372036854775808", INT64_MIN},
      {"18446744073709551615", UINT64_MAX},
      {"1.2.3", "1.2.3"},
      {"0x", "0x"},
      {"-", Json::array({nullptr})},
      {"e3", "e3"},
      {"0", 0},
      {"-0", 0},
      {"!!int 7", 7},
      {"!!binary aGk=", "hi"},
  };
  for (const auto& known : kCases) {
    if (std::string(known.word) == "-") continue;  // A sequence, not a word.
    EXPECT_EQ(only(std::string("value: ") + known.word + "\n")["value"], known.value) << known.word;
  }
}

TEST(Yaml, TurnsKeysIntoText) {
  EXPECT_EQ(only("yes: 1\n1: a\n'on': c\n"), (Json{{"true", 1}, {"1", "a"}, {"on", "c"}}));
}

TEST(Yaml, ReadsManyDocumentsAndLeavesOutEmptyOnes) {
  const File file = read("# nothing\n---\na: 1\n---\n---\nb: 2\n---\n# end\n", "a.yaml");
  ASSERT_TRUE(file.problems.empty()) << to_text(file.problems);
  ASSERT_EQ(file.documents.size(), 2u);
  EXPECT_EQ(file.documents[0].json, (Json{{"a", 1}}));
  EXPECT_EQ(file.documents[1].json, (Json{{"b", 2}}));
  EXPECT_EQ(file.documents[1].number, file.documents[0].number + 2);
  EXPECT_EQ(file.documents[1].positions.value("/b"), (Position{6, 4, 30}));
}

TEST(Yaml, ReadsNothingFromAnEmptyFile) {
  EXPECT_TRUE(read("", "a.yaml").documents.empty());
  EXPECT_TRUE(read("# only a comment\n", "a.yaml").documents.empty());
  EXPECT_TRUE(read("", "a.yaml").problems.empty());
}

TEST(Yaml, KnowsWhereEachValueStands) {
  const File file = read("spec:\n  env:\n  - name: A\n    value: \"x\"\n", "a.yaml");
  ASSERT_EQ(file.documents.size(), 1u);
  const PositionMap& at = file.documents[0].positions;
  EXPECT_EQ(at.value("/spec/env/0/value").line, 4);
  EXPECT_EQ(at.value("/spec/env/0/value").column, 12);
  EXPECT_EQ(at.key("/spec/env/0/value").column, 5);
  // A value that is not there stands where the thing around it does.
  EXPECT_EQ(at.value("/spec/env/0/valueFrom/x").line, 3);
}

TEST(Yaml, ExpandsAliasesAndMergeKeys) {
  EXPECT_EQ(only("base: &b {x: 1, z: 2}\nuse: *b\nmerged:\n  <<: *b\n  z: 3\n"),
            (Json{{"base", {{"x", 1}, {"z", 2}}},
                  {"use", {{"x", 1}, {"z", 2}}},
                  {"merged", {{"x", 1}, {"z", 3}}}}));
  EXPECT_EQ(only("a: &a {x: 1}\nb: &b {x: 2, z: 2}\nm: {<<: [*a, *b]}\n")["m"],
            (Json{{"x", 1}, {"z", 2}}));
}

struct Refused {
  const char* name;
  std::string text;
  const char* message;
};

std::string billion_laughs() {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int level = 1; level < 10; ++level) {
    const std::string below = "*a" + std::to_string(level - 1);
    text += "a" + std::to_string(level) + ": &a" + std::to_string(level) + " [" + below;
    for (int copy = 1; copy < 10; ++copy) text += ", " + below;
    text += "]\n";
  }
  return text;
}

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

std::string documents(int count) {
  std::string text;
  for (int each = 0; each < count; ++each) text += "---\na: 1\n";
  return text;
}

TEST(Yaml, RefusesWhatItCannotBoundOrMean) {
  const Refused kCases[] = {
      {"billion laughs", billion_laughs(),
       "a.yaml:5:45: a4[7]: the document has more than 100000 values, aliases counted as what they "
       "stand for; split it, and write few aliases"},
      {"depth", nested(kDepthMax + 1),
       "a.yaml:1:65: "
       "[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]["
       "0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0]["
       "0]"
       "[0][0][0]: values nest deeper than 64; flatten the document"},
      {"documents", documents(kDocumentsMax + 1),
       "a.yaml: the file has more than 1000 documents; split it"},
      {"size", std::string(kFileBytesMax + 1, '#'),
       "a.yaml: the file has 1048577 bytes, more than the 1048576 allowed; split it"},
      {"duplicate key", "a: 1\nb: 2\na: 3\n",
       "a.yaml:3:1: a: the key stands twice in one mapping; keep one of the two"},
      {"self alias", "a: &x [*x]\n",
       "a.yaml:1:8: a[0]: an alias stands inside what it stands for; write the value out"},
      {"infinity", "a: .inf\n",
       "a.yaml:1:4: a: .inf is no number that JSON knows; quote it if text is meant"},
      {"foreign tag", "a: !python/object x\n",
       "a.yaml:1:4: a: the tag !python/object does not fit here; remove the tag"},
      {"wrong tag", "a: !!int x\n",
       "a.yaml:1:4: a: the tag tag:yaml.org,2002:int does not fit here; remove the tag"},
      {"mapping as a key", "? {a: 1}\n: 2\n", "a.yaml:1:3: a key must be text; write a plain key"},
      {"null as a key", "~: 1\n", "a.yaml:1:1: a key must be text; write the key in quotes"},
      {"merge of text", "a:\n  <<: x\n",
       "a.yaml:2:3: a: << must stand for a mapping or a list of mappings; write the fields out"},
      {"bytes that are no text", "a: 1\nb: \xff\n",
       "a.yaml:2:4: the file is not UTF-8 text here; save it as UTF-8"},
      {"zero byte", std::string("a: \0", 4),
       "a.yaml:1:4: the file is not UTF-8 text here; save it as UTF-8"},
  };
  for (const Refused& wrong : kCases) {
    SCOPED_TRACE(wrong.name);
    const File file = read(wrong.text, "a.yaml");
    ASSERT_EQ(file.problems.size(), 1u);
    EXPECT_EQ(to_text(file.problems[0]), wrong.message);
  }
}

TEST(Yaml, SurvivesBracketsWithoutEnd) {
  const File file = read(std::string(100'000, '['), "a.yaml");
  EXPECT_EQ(file.problems.size(), 1u);
}

TEST(Yaml, SpellsFieldsAsPeopleDo) {
  EXPECT_EQ(field_of(""), "");
  EXPECT_EQ(field_of("/spec/env/0/name"), "spec.env[0].name");
  EXPECT_EQ(field_of("/spec/providerMetadata/sandfleet.uid"),
            "spec.providerMetadata[\"sandfleet.uid\"]");
  EXPECT_EQ(field_of("/metadata/annotations/a~1b~0c"), "metadata.annotations[\"a/b~c\"]");
}

}  // namespace
}  // namespace yaml
