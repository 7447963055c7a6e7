#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "libs/base/result.h"

// Compiled once, in json.cc, and not in each file that touches a value.
extern template class nlohmann::basic_json<>;

// nlohmann::json without exceptions: what a peer sends may be anything.
namespace base {

using Json = nlohmann::json;

Result<Json> parse_json(std::string_view text);
// Never throws: bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& value, int indent = -1);

// The member of that type, or nothing when it is missing, null or of another type.
std::optional<std::string> text_at(const Json& object, const char* key);
std::optional<std::int64_t> integer_at(const Json& object, const char* key);
std::optional<bool> bool_at(const Json& object, const char* key);
const Json* object_at(const Json& object, const char* key);
const Json* array_at(const Json& object, const char* key);

}  // namespace base
