#include "libs/base/json.h"

template class nlohmann::basic_json<>;

namespace base {
namespace {

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

}  // namespace

Result<Json> parse_json(std::string_view text) {
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return Error{ErrorCode::kInvalid, "not JSON"};
  return value;
}

std::string to_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::string> text_at(const Json& object, const char* key) {
  const Json* found = member(object, key);
  if (!found || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<std::int64_t> integer_at(const Json& object, const char* key) {
  const Json* found = member(object, key);
  if (!found || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::optional<bool> bool_at(const Json& object, const char* key) {
  const Json* found = member(object, key);
  if (!found || !found->is_boolean()) return std::nullopt;
  return found->get<bool>();
}

const Json* object_at(const Json& object, const char* key) {
  const Json* found = member(object, key);
  return found && found->is_object() ? found : nullptr;
}

const Json* array_at(const Json& object, const char* key) {
  const Json* found = member(object, key);
  return found && found->is_array() ? found : nullptr;
}

}  // namespace base
