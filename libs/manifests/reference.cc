#include "libs/manifests/reference.h"

#include <regex>

#include "libs/base/strings.h"
#include "libs/manifests/rules.h"
#include "libs/manifests/schema.h"

namespace manifests {

using base::Json;

namespace {

constexpr const char* kHowToWrite =
    "Written by `build/dev/bin/manifests_docs docs`; edit its source, not this page.\n\n";

constexpr const char* kNowhere =
    "\n## What no condition can say\n\n"
    "A standalone controller that cannot write its state folder, as on a full disk, cannot write "
    "a\n"
    "condition about it either: those that are there stay as they are, and may be old. Then "
    "`/readyz`\n"
    "answers 503 and why, `sandfleet_state_unwritable` is 1, the log says so, and `sandfleet get` "
    "and\n"
    "`describe` warn of a disk that is full. What is on record is kept alive, nothing else is "
    "done, and\n"
    "it goes on by itself once there is room.\n";

std::string limits_of(const Json& field) {
  std::vector<std::string> parts;
  const auto add = [&](const char* keyword, const char* words) {
    if (field.contains(keyword)) parts.push_back(words + base::to_text(field[keyword]));
  };
  if (field.contains("enum")) {
    std::vector<std::string> words;
    for (const Json& word : field["enum"])
      if (word != "") words.push_back(word.get<std::string>());
    parts.push_back("one of " + base::join(words, ", "));
  }
  if (field.contains("default") && !field["default"].is_object())  // Its fields say theirs.
    parts.push_back("default " + base::to_text(field["default"]));
  add("minimum", "at least ");
  add("maximum", "at most ");
  add("maxItems", "items at most ");
  add("maxProperties", "entries at most ");
  if (!field.contains("enum")) add("maxLength", "characters at most ");
  return base::join(parts, "; ");
}

void add_rows(const Json& schema, const std::string& path, std::string& page) {
  const Json* properties = base::object_at(schema, "properties");
  if (!properties) return;
  for (const auto& [name, field] : properties->items()) {
    const bool list = field.contains("items");
    const std::string at = (path.empty() ? "" : path + ".") + name + (list ? "[]" : "");
    const Json* required = base::array_at(schema, "required");
    const bool needed = required && std::ranges::find(*required, Json(name)) != required->end();
    page += "| `" + at + "` | " + field["type"].get<std::string>() + (needed ? ", required" : "") +
            " | " + field["description"].get<std::string>() + " | " + limits_of(field) + " |\n";
    add_rows(list ? field["items"] : field, at, page);
  }
}

void add_kind(Kind kind, const char* scope, std::string& page) {
  const Json& schema = schema_of(kind).json();
  page += "## " + std::string(to_word(kind)) + "\n\n" + schema["description"].get<std::string>() +
          " " + scope + "\n\n| field | type | meaning | limits |\n|---|---|---|---|\n";
  for (const char* part : {"spec", "status"}) add_rows(schema["properties"][part], part, page);
  page += "\nRules beyond the types:\n\n";
  for (const Rule& rule : rules())
    if (rule.kind == kind)
      page += "- " + std::string(rule.message) + (rule.compares ? " (checked on each edit)" : "") +
              "\n";
  page += "\n";
}

constexpr const char* kHowToRetry =
    "What is `Stalled` is tried again when the resource, its provider or a credential changes, "
    "and\n"
    "at once for each `sandfleet reconcile NAME`, which sets the annotation\n"
    "`sandfleet.dev/reconcile-requested-at` to the time.\n\n"
    "What is paused with reason `Idle` is woken by `sandfleet resume NAME`, which sets the "
    "annotation\n"
    "`sandfleet.dev/wake-requested-at`; with `lifecycle.wakeOnAttach` also by whoever "
    "attaches.\n\n";

}  // namespace

std::string api_page() {
  std::string page = "# The API: `sandfleet.dev/v1alpha1`\n\n";
  page += kHowToWrite;
  add_kind(Kind::kSandbox, "Namespaced; short name `sfb`.", page);
  add_kind(Kind::kProvider, "Cluster-scoped; short name `sfp`.", page);
  page.pop_back();
  return page;
}

std::string conditions_page(std::string_view reasons) {
  const std::string text(reasons);
  const std::size_t split = text.find("namespace reason {");
  const std::regex entry(R"re(string_view k\w+\s*=\s*"(\w+)";[ \t]*(?://[ \t]*([^\n]*))?)re");
  const auto table = [&](const std::string& part) {
    std::string rows = "| word | meaning |\n|---|---|\n";
    for (std::sregex_iterator found(part.begin(), part.end(), entry), end; found != end; ++found)
      rows += "| `" + (*found)[1].str() + "` | " + (*found)[2].str() + " |\n";
    return rows;
  };
  return "# Conditions and reasons\n\n" + std::string(kHowToWrite) + kHowToRetry +
         "## Condition types\n\n" + table(text.substr(0, split)) + "\n## Reasons\n\n" +
         table(text.substr(split)) + kNowhere;
}

}  // namespace manifests
