#include "libs/manifests/schema.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <mutex>
#include <regex>
#include <set>

#include "libs/base/strings.h"
#include "libs/base/time.h"
#include "libs/manifests/crds.h"
#include "libs/yaml/reader.h"

namespace manifests {

using base::Json;

namespace {

Json schema_from(const char* crd) {
  const yaml::File file = yaml::read(crd, "crds");
  assert(file.problems.empty() && file.documents.size() == 1);
  return file.documents[0].json["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

void fill(const Json& schema, Json& value) {
  if (value.is_array() && schema.contains("items"))
    for (Json& item : value) fill(schema["items"], item);
  if (!value.is_object()) return;
  const Json* properties = base::object_at(schema, "properties");
  for (auto member = value.begin(); member != value.end();) {
    const bool known = !properties || properties->contains(member.key());
    member = known && member->is_null() ? value.erase(member) : std::next(member);
  }
  if (properties) {
    for (const auto& [name, property] : properties->items()) {
      if (!value.contains(name) && property.contains("default")) value[name] = property["default"];
      if (value.contains(name)) fill(property, value[name]);
    }
  }
}

std::size_t letters_in(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return (byte & 0xC0) != 0x80; }));
}

std::string quoted(const Json& value) {
  constexpr std::size_t kShownMax = 60;
  std::string text = base::to_text(value);
  if (text.size() <= kShownMax) return text;
  std::size_t cut = kShownMax;
  while ((text[cut] & 0xC0) == 0x80) --cut;
  return text.substr(0, cut) + "...";
}

std::string word_for_type(const Json& value) {
  if (value.is_object()) return "a mapping";
  if (value.is_array()) return "a list";
  if (value.is_string()) return "text";
  if (value.is_boolean()) return "the truth value " + base::to_text(value);
  if (value.is_null()) return "nothing";
  return "the number " + base::to_text(value);
}

// Each pattern of the schemas once: making one takes longer than using it.
const std::regex& compiled(const std::string& pattern) {
  static std::mutex mutex;
  static std::map<std::string, std::regex> known;
  std::lock_guard lock(mutex);
  const auto found = known.find(pattern);
  return found != known.end() ? found->second : known.emplace(pattern, pattern).first->second;
}

constexpr const char* kWriteATime = "write it like 2026-11-29T17:46:31Z";

std::string cure_for_pattern(const std::string& pattern) {
  constexpr std::pair<std::string_view, const char*> kCures[] = {
      {"^[a-z0-9]([-a-z0-9]", "use lower-case letters, digits and dashes"},
      {"^[0-9]{4}-", kWriteATime},
      {"^https?://", "write it like https://api.example.com"},
      {"^-----BEGIN CERTIFICATE", "paste the PEM text itself, not its base64"},
      {"^[A-Za-z_]", "use letters, digits and underscores"},
      {"^[A-Za-z0-9]", "use letters, digits and . _ / : -"},
      {"^(([A-Za-z0-9]", "use letters, digits and - _ ."},
  };
  for (const auto& [start, cure] : kCures)
    if (pattern.starts_with(start)) return cure;
  return "write it in the form that the pattern allows";
}

// Names what is wrong with a value, one method a keyword of the schema.
class Inspector {
 public:
  std::vector<Violation> found;

  void inspect(const Json& schema, const Json& value, const std::string& pointer) {
    if (!right_type(schema, value, pointer)) return;
    if (value.is_object()) inspect_object(schema, value, pointer);
    if (value.is_array()) inspect_list(schema, value, pointer);
    if (value.is_string()) inspect_text(schema, value, pointer);
    if (value.is_number()) inspect_number(schema, value, pointer);
    if (schema.contains("enum")) inspect_choice(schema["enum"], value, pointer);
  }

 private:
  void add(const std::string& pointer, std::string rule, std::string cure) {
    found.push_back({pointer, std::move(rule), std::move(cure)});
  }

  bool right_type(const Json& schema, const Json& value, const std::string& pointer) {
    const std::string type = base::text_at(schema, "type").value_or("");
    const bool right = type.empty() || (type == "object" && value.is_object()) ||
                       (type == "array" && value.is_array()) ||
                       (type == "string" && value.is_string()) ||
                       (type == "integer" && value.is_number_integer()) ||
                       (type == "boolean" && value.is_boolean());
    if (right) return true;
    const std::string is = ", is " + word_for_type(value);
    if (type == "object")
      add(pointer, "must be a mapping" + is, "write its fields below it, indented");
    else if (type == "array")
      add(pointer, "must be a list" + is, "write its items below it, each after a dash");
    else if (type == "string")
      add(pointer, "must be text" + is,
          value.is_structured() ? "write one value" : "put it in quotes");
    else if (type == "integer")
      add(pointer, "must be a whole number" + is,
          value.is_string() ? "write digits only, without quotes" : "write digits only");
    else
      add(pointer, "must be true or false" + is, "write true or false");
    return false;
  }

  void inspect_object(const Json& schema, const Json& value, const std::string& pointer) {
    const Json* properties = base::object_at(schema, "properties");
    const Json* others = base::object_at(schema, "additionalProperties");
    for (const auto& [name, member] : value.items()) {
      const std::string at = yaml::pointer_to(pointer, name);
      if (properties && properties->contains(name))
        inspect((*properties)[name], member, at);
      else if (others)
        inspect(*others, member, at);
      else if (properties)
        refuse_unknown(*properties, name, at);
    }
    if (const Json* required = base::array_at(schema, "required"))
      for (const Json& name : *required)
        if (!value.contains(name.get<std::string>()))
          refuse_missing(schema, name.get<std::string>(), pointer);
    limit(schema, "maxProperties", value.size(), "entries", pointer);
  }

  void refuse_unknown(const Json& properties, const std::string& name, const std::string& pointer) {
    std::vector<std::string> known;
    for (const auto& property : properties.items()) known.push_back(property.key());
    const std::string meant = nearest(name, known);
    found.push_back({pointer, "there is no such field",
                     meant.empty() ? "remove it; known here: " + base::join(known, ", ")
                                   : "did you mean " + meant + "?",
                     true});
  }

  void refuse_missing(const Json& schema, const std::string& name, const std::string& pointer) {
    const Json* properties = base::object_at(schema, "properties");
    const Json* property = properties ? base::object_at(*properties, name.c_str()) : nullptr;
    const std::string about = property ? base::text_at(*property, "description").value_or("") : "";
    add(yaml::pointer_to(pointer, name), "is missing",
        "add it: " + about.substr(0, about.find('.')));
  }

  void inspect_list(const Json& schema, const Json& value, const std::string& pointer) {
    limit(schema, "maxItems", value.size(), "items", pointer);
    for (std::size_t index = 0; index < value.size(); ++index)
      inspect(schema["items"], value[index], yaml::pointer_to(pointer, index));
    if (const Json* keys = base::array_at(schema, "x-kubernetes-list-map-keys"))
      refuse_twins((*keys)[0].get<std::string>(), value, pointer);
  }

  void refuse_twins(const std::string& key, const Json& list, const std::string& pointer) {
    std::set<std::string> seen;
    for (std::size_t index = 0; index < list.size(); ++index) {
      const auto name = base::text_at(list[index], key.c_str());
      if (name && !seen.insert(*name).second)
        add(yaml::pointer_to(yaml::pointer_to(pointer, index), key),
            "two items have the " + key + " " + *name, "keep one of the two");
    }
  }

  void inspect_text(const Json& schema, const Json& value, const std::string& pointer) {
    const auto& text = value.get_ref<const std::string&>();
    const std::size_t letters = letters_in(text);
    if (base::integer_at(schema, "minLength").value_or(0) > 0 && letters == 0) {
      add(pointer, "must not be empty", "fill it in");
      return;
    }
    limit(schema, "maxLength", letters, "characters", pointer);
    // std::regex recurses with the length of what it reads, so nothing too long may reach it.
    if (letters > static_cast<std::size_t>(base::integer_at(schema, "maxLength").value_or(0)))
      return;
    const auto pattern = base::text_at(schema, "pattern");
    if (base::text_at(schema, "format") == "date-time" && !base::parse_rfc3339(text))
      add(pointer, "must be a time, is " + quoted(value), kWriteATime);
    else if (pattern && !std::regex_search(text, compiled(*pattern)))
      add(pointer, "must match " + *pattern + ", is " + quoted(value), cure_for_pattern(*pattern));
  }

  void inspect_number(const Json& schema, const Json& value, const std::string& pointer) {
    const auto least = base::integer_at(schema, "minimum");
    const auto most = base::integer_at(schema, "maximum");
    if (least && value < *least)
      add(pointer, "must be at least " + std::to_string(*least) + ", is " + quoted(value),
          "raise it");
    if (most && value > *most)
      add(pointer, "must be at most " + std::to_string(*most) + ", is " + quoted(value),
          "lower it");
  }

  void inspect_choice(const Json& choices, const Json& value, const std::string& pointer) {
    if (std::ranges::find(choices, value) != choices.end()) return;
    std::vector<std::string> words;
    for (const Json& choice : choices) words.push_back(choice.get<std::string>());
    const std::string meant = nearest(value.is_string() ? value.get<std::string>() : "", words);
    add(pointer, "must be one of " + base::join(words, ", ") + ", is " + quoted(value),
        meant.empty() ? "choose one of them" : "did you mean " + meant + "?");
  }

  void limit(const Json& schema, const char* keyword, std::size_t has, const char* of_what,
             const std::string& pointer) {
    const auto most = base::integer_at(schema, keyword);
    if (most && has > static_cast<std::size_t>(*most))
      add(pointer,
          "must have at most " + std::to_string(*most) + " " + of_what + ", has " +
              std::to_string(has),
          std::string(keyword) == "maxLength" ? "shorten it" : "remove some");
  }
};

// Levenshtein's distance.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t column = 0; column <= b.size(); ++column) row[column] = column;
  for (std::size_t line = 1; line <= a.size(); ++line) {
    std::size_t diagonal = row[0];
    row[0] = line;
    for (std::size_t column = 1; column <= b.size(); ++column) {
      const std::size_t change = diagonal + (a[line - 1] == b[column - 1] ? 0 : 1);
      diagonal = row[column];
      row[column] = std::min({row[column] + 1, row[column - 1] + 1, change});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(const std::string& wrong, const std::vector<std::string>& known) {
  constexpr std::size_t kComparedMax = 64;  // No field has so long a name.
  if (wrong.size() > kComparedMax) return "";
  constexpr std::size_t kStartMin = 4;
  for (const std::string& word : known)
    if (wrong.size() >= kStartMin && base::lower(word).starts_with(base::lower(wrong))) return word;
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, wrong.size() / 3) + 1;
  for (const std::string& word : known) {
    const std::size_t apart = distance(base::lower(wrong), base::lower(word));
    if (apart >= best_distance || apart >= word.size()) continue;
    best = word;
    best_distance = apart;
  }
  return best;
}

void Schema::prepare(Json& object) const { fill(json_, object); }

std::vector<Violation> Schema::check(const Json& object) const {
  Inspector inspector;
  inspector.inspect(json_, object, "");
  if (!inspector.found.empty()) return inspector.found;
  const std::string objection = judge_.objection(object);
  if (objection.empty()) return {};
  return {{"", "does not fit the schema: " + objection, "see docs/api.md"}};
}

const Schema& schema_of(Kind kind) {
  static const Schema kSandbox(schema_from(kSandboxCrd));
  static const Schema kProvider(schema_from(kProviderCrd));
  assert(kind != Kind::kSecret);
  return kind == Kind::kSandbox ? kSandbox : kProvider;
}

}  // namespace manifests
