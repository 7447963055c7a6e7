#include "cli/print/yaml.h"

#include <algorithm>
#include <set>

#include "libs/base/strings.h"

namespace cli {
namespace {

using base::Json;

// Words that some YAML reader takes for something else than text.
bool is_reserved(const std::string& text) {
  static const std::set<std::string, std::less<>> kWords = {"true", "false", "yes", "no", "on",
                                                            "off",  "null",  "y",   "n"};
  return kWords.contains(base::lower(text));
}

bool is_plain(const std::string& text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto safe = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/';
  };
  return !text.empty() && letter(text[0]) && std::ranges::all_of(text, safe) && !is_reserved(text);
}

std::string scalar(const Json& value) {
  if (value.is_string() && is_plain(value.get_ref<const std::string&>())) return value;
  return base::to_text(value);  // JSON's spelling of a scalar is YAML too.
}

bool is_nested(const Json& value) { return value.is_structured() && !value.empty(); }

void write(const Json& value, const std::string& indent, std::string& out);

void write_member(const Json& value, const std::string& indent, std::string& out) {
  if (!is_nested(value)) {
    out += " " + (value.is_structured() ? base::to_text(value) : scalar(value)) + "\n";
    return;
  }
  out += "\n";
  write(value, value.is_array() ? indent : indent + "  ", out);
}

void write(const Json& value, const std::string& indent, std::string& out) {
  if (value.is_object() && !value.empty()) {
    for (const auto& [name, member] : value.items()) {
      out += indent + scalar(Json(name)) + ":";
      write_member(member, indent, out);
    }
  } else if (value.is_array() && !value.empty()) {
    for (const auto& item : value) {
      if (!is_nested(item)) {
        out += indent + "-";
        write_member(item, indent, out);
        continue;
      }
      // The first line of the item stands beside its dash.
      std::string nested;
      write(item, indent + "  ", nested);
      nested[indent.size()] = '-';
      out += nested;
    }
  } else {
    out += indent + scalar(value) + "\n";
  }
}

}  // namespace

std::string to_yaml(const Json& value) {
  std::string out;
  write(value, "", out);
  return out;
}

}  // namespace cli
