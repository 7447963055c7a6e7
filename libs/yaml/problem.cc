#include "libs/yaml/problem.h"

#include "libs/base/strings.h"
#include "libs/yaml/reader.h"

namespace yaml {

using base::Json;

std::string to_text(const Problem& problem) {
  std::string text = problem.file;
  if (problem.line > 0)
    text += ":" + std::to_string(problem.line) + ":" + std::to_string(problem.column);
  text += ": ";
  if (!problem.field.empty()) text += problem.field + ": ";
  text += problem.rule;
  if (!problem.cure.empty()) text += "; " + problem.cure;
  return text;
}

std::string to_text(const std::vector<Problem>& problems) {
  std::vector<std::string> lines;
  for (const Problem& problem : problems) lines.push_back(to_text(problem));
  return base::join(lines, "\n");
}

Json to_json(const Problem& problem) {
  return {{"file", problem.file},   {"line", problem.line}, {"column", problem.column},
          {"field", problem.field}, {"rule", problem.rule}, {"cure", problem.cure}};
}

Problem problem_from_json(const Json& json) {
  return {base::text_at(json, "file").value_or(""),
          static_cast<int>(base::integer_at(json, "line").value_or(0)),
          static_cast<int>(base::integer_at(json, "column").value_or(0)),
          base::text_at(json, "field").value_or(""),
          base::text_at(json, "rule").value_or(""),
          base::text_at(json, "cure").value_or("")};
}

// Members whose names hold dots or other marks are quoted: providerMetadata["sandfleet.uid"].
std::string field_of(const std::string& pointer) {
  std::string field;
  const auto parts = base::split(pointer, '/');
  for (std::size_t part = 1; part < parts.size(); ++part) {
    std::string name;
    for (std::size_t at = 0; at < parts[part].size(); ++at) {
      if (parts[part][at] != '~' || at + 1 >= parts[part].size()) {
        name += parts[part][at];
        continue;
      }
      name += parts[part][++at] == '1' ? '/' : '~';
    }
    const bool number = base::parse_integer(name).has_value();
    const bool word = name.find_first_of(".[]\"/ ") == std::string::npos && !name.empty();
    if (number)
      field += "[" + name + "]";
    else if (!word)
      field += "[\"" + name + "\"]";
    else
      field += (field.empty() ? "" : ".") + name;
  }
  return field;
}

}  // namespace yaml
