#include "executor/envd/proto_json.h"

#include "libs/base/crypto.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

std::string snake_case(std::string_view camel) {
  std::string snake;
  for (const char c : camel) {
    if (c >= 'A' && c <= 'Z') {
      snake += '_';
      snake += static_cast<char>(c - 'A' + 'a');
    } else {
      snake += c;
    }
  }
  return snake;
}

RpcError wrong(std::string_view name, std::string_view wanted) {
  return {RpcCode::kInvalidArgument,
          "field '" + std::string(name) + "' must be " + std::string(wanted)};
}

}  // namespace

const base::Json* Message::find(std::string_view name) const {
  if (!json_.is_object()) return nullptr;
  auto found = json_.find(name);
  if (found == json_.end()) found = json_.find(snake_case(name));
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

RpcResult<std::optional<std::string>> Message::text(std::string_view name) const {
  const base::Json* found = find(name);
  if (!found) return std::optional<std::string>();
  if (!found->is_string()) return wrong(name, "a string");
  return std::optional(found->get<std::string>());
}

RpcResult<std::optional<bool>> Message::boolean(std::string_view name) const {
  const base::Json* found = find(name);
  if (!found) return std::optional<bool>();
  if (!found->is_boolean()) return wrong(name, "true or false");
  return std::optional(found->get<bool>());
}

RpcResult<std::optional<std::uint32_t>> Message::number(std::string_view name) const {
  const base::Json* found = find(name);
  if (!found) return std::optional<std::uint32_t>();
  std::optional<std::int64_t> value;
  if (found->is_number_integer()) value = found->get<std::int64_t>();
  if (found->is_string()) value = base::parse_integer(found->get_ref<const std::string&>());
  if (!value || *value < 0 || *value > UINT32_MAX) return wrong(name, "a number from 0 to 2^32-1");
  return std::optional(static_cast<std::uint32_t>(*value));
}

RpcResult<std::optional<std::string>> Message::bytes(std::string_view name) const {
  TRY(const auto encoded, text(name));
  if (!encoded) return std::optional<std::string>();
  auto decoded = base::from_base64(*encoded);
  if (!decoded) decoded = base::from_base64url(*encoded);
  if (!decoded) return wrong(name, "base64");
  return std::optional(*std::move(decoded));
}

RpcResult<std::optional<base::Json>> Message::message(std::string_view name) const {
  const base::Json* found = find(name);
  if (!found) return std::optional<base::Json>();
  if (!found->is_object()) return wrong(name, "an object");
  return std::optional<base::Json>(*found);
}

RpcResult<std::vector<std::string>> Message::texts(std::string_view name) const {
  std::vector<std::string> values;
  const base::Json* found = find(name);
  if (!found) return values;
  if (!found->is_array()) return wrong(name, "a list of strings");
  for (const base::Json& item : *found) {
    if (!item.is_string()) return wrong(name, "a list of strings");
    values.push_back(item.get<std::string>());
  }
  return values;
}

RpcResult<std::map<std::string, std::string>> Message::text_map(std::string_view name) const {
  std::map<std::string, std::string> values;
  const base::Json* found = find(name);
  if (!found) return values;
  if (!found->is_object()) return wrong(name, "a map of strings");
  for (const auto& [key, item] : found->items()) {
    if (!item.is_string()) return wrong(name, "a map of strings");
    values[key] = item.get<std::string>();
  }
  return values;
}

RpcResult<std::optional<int>> Message::enumerator(
    std::string_view name, std::initializer_list<std::pair<std::string_view, int>> names) const {
  const base::Json* found = find(name);
  if (!found) return std::optional<int>();
  if (found->is_number_integer()) return std::optional(found->get<int>());
  if (!found->is_string()) return wrong(name, "the name or number of an enum value");
  for (const auto& [word, value] : names)
    if (*found == word) return std::optional(value);
  return wrong(name, "a known enum value, not '" + found->get<std::string>() + "'");
}

RpcResult<base::Json> parse_message(std::string_view text) {
  auto json = base::parse_json(text);
  if (!json || !json->is_object())
    return RpcError(RpcCode::kInvalidArgument, "the message is not a JSON object");
  return *std::move(json);
}

}  // namespace executor
