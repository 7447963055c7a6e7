#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "executor/envd/connect.h"

// Reads messages in protobuf's JSON form: names in camelCase or snake_case, null means absent,
// unknown fields are ignored, 64-bit numbers may be texts, bytes are base64 in either alphabet.
// What has the wrong type is invalid_argument with the field's name.
namespace executor {

class Message {
 public:
  explicit Message(const base::Json& json) : json_(json) {}

  // `name` is the camelCase form. An absent field is nothing; zero values count as present.
  RpcResult<std::optional<std::string>> text(std::string_view name) const;
  RpcResult<std::optional<bool>> boolean(std::string_view name) const;
  RpcResult<std::optional<std::uint32_t>> number(std::string_view name) const;
  RpcResult<std::optional<std::string>> bytes(std::string_view name) const;
  RpcResult<std::optional<base::Json>> message(std::string_view name) const;
  RpcResult<std::vector<std::string>> texts(std::string_view name) const;
  RpcResult<std::map<std::string, std::string>> text_map(std::string_view name) const;
  // An enum by its name or its number.
  RpcResult<std::optional<int>> enumerator(
      std::string_view name, std::initializer_list<std::pair<std::string_view, int>> names) const;

 private:
  const base::Json* find(std::string_view name) const;
  const base::Json& json_;
};

// The JSON of one message; must be an object.
RpcResult<base::Json> parse_message(std::string_view text);

}  // namespace executor
