#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "libs/base/json.h"
#include "libs/base/result.h"

// How the fields of a message stand in a JSON object. A message describes them once, in a function
// fields(visit, message) beside it, for both directions; each field has a rule that knows how its
// value is written and what of it may be read.
namespace wire {

// A `Message` that is read into, or written from.
template <typename Fields, typename Message>
concept Is = std::same_as<std::remove_const_t<Fields>, Message>;

inline constexpr std::int64_t kCountMax =
    (std::int64_t{1} << 53) - 1;  // What JSON carries exactly.

base::Error must_be(std::string_view what);

struct Text {
  std::size_t bytes_min, bytes_max;
  base::Json write(const std::string& text) const { return text; }
  base::Result<std::string> read(const base::Json& json) const;
};

// Bytes that need not be UTF-8, but hold no NUL: {"b64": "..."} where a string cannot hold them.
struct Name {
  std::size_t bytes_min, bytes_max;
  base::Json write(const std::string& bytes) const;
  base::Result<std::string> read(const base::Json& json) const;
};

struct Number {
  std::int64_t min = 0, max = kCountMax;
  base::Json write(std::int64_t number) const { return number; }
  base::Result<std::int64_t> read(const base::Json& json) const;
};

// Of a request or a stream.
struct Id {
  base::Json write(std::uint32_t id) const { return id; }
  base::Result<std::uint32_t> read(const base::Json& json) const;
};

// Of a process, as its client chose it.
struct Handle {
  base::Json write(const std::string& handle) const { return handle; }
  base::Result<std::string> read(const base::Json& json) const;
};

struct Flag {
  base::Json write(bool flag) const { return flag; }
  base::Result<bool> read(const base::Json& json) const;
};

// Any object, for whoever knows what it means.
struct AnyObject {
  base::Json write(const base::Json& object) const { return object; }
  base::Result<base::Json> read(const base::Json& json) const;
};

template <typename Value>
struct Words {
  std::span<const std::pair<Value, std::string_view>> known;
  std::optional<Value> other = std::nullopt;  // What a word that is not known stands for.

  base::Json write(Value value) const {
    for (const auto& [one, word] : known)
      if (one == value) return word;
    return nullptr;
  }
  base::Result<Value> read(const base::Json& json) const {
    std::string allowed;
    for (const auto& [one, word] : known) {
      if (json.is_string() && json.template get_ref<const std::string&>() == word) return one;
      allowed.append(allowed.empty() ? "" : ", ").append(word);
    }
    if (other && json.is_string()) return *other;
    return must_be("one of " + allowed);
  }
};

template <typename Message>
base::Json to_json(const Message& message);
template <typename Message>
base::Result<Message> from_json(const base::Json& json);

// A message inside another.
template <typename Message>
struct Inner {
  base::Json write(const Message& message) const { return to_json(message); }
  base::Result<Message> read(const base::Json& json) const { return from_json<Message>(json); }
};

template <typename Rule>
struct List {
  std::size_t items_max;
  Rule rule;

  template <typename Item>
  base::Json write(const std::vector<Item>& items) const {
    base::Json list = base::Json::array();
    for (const Item& item : items) list.push_back(rule.write(item));
    return list;
  }
  auto read(const base::Json& json) const {
    using Item = typename decltype(rule.read(json))::Value;
    using Items = base::Result<std::vector<Item>>;
    if (!json.is_array() || json.size() > items_max)
      return Items(must_be("a list of at most " + std::to_string(items_max)));
    std::vector<Item> items;
    items.reserve(json.size());
    for (const base::Json& one : json) {
      auto item = rule.read(one);
      if (!item)
        return Items(base::error(base::ErrorCode::kInvalid, "item ", std::to_string(items.size()),
                                 " ", item.error().message));
      items.push_back(*std::move(item));
    }
    return Items(std::move(items));
  }
};
template <typename Rule>
List(std::size_t, Rule) -> List<Rule>;

class FieldWriter {
 public:
  template <typename Value, typename Rule>
  void operator()(const char* name, const Value& value, const Rule& rule) {
    out[name] = rule.write(value);
  }
  template <typename Value, typename Rule>
  void optional(const char* name, const std::optional<Value>& value, const Rule& rule) {
    if (value) out[name] = rule.write(*value);
  }
  template <typename Value, typename Rule>
  void with_default(const char* name, const Value& value, const Value& usual, const Rule& rule) {
    if (!(value == usual)) out[name] = rule.write(value);
  }
  // Null stands for nothing, and the field is always there.
  template <typename Value, typename Rule>
  void nullable(const char* name, const std::optional<Value>& value, const Rule& rule) {
    out[name] = value ? rule.write(*value) : base::Json(nullptr);
  }
  void judge(bool, std::string_view) {}

  base::Json out = base::Json::object();
};

class FieldReader {
 public:
  explicit FieldReader(const base::Json& in) : in_(in) {
    if (!in.is_object()) refuse(must_be("an object").message);
  }

  template <typename Value, typename Rule>
  void operator()(const char* name, Value& value, const Rule& rule) {
    if (error_) return;
    if (const base::Json* found = member(name)) return take(name, *found, value, rule);
    refuse(std::string("\"") + name + "\" is missing");
  }
  template <typename Value, typename Rule>
  void optional(const char* name, std::optional<Value>& value, const Rule& rule) {
    if (const base::Json* found = member(name)) take(name, *found, value.emplace(), rule);
  }
  template <typename Value, typename Rule>
  void with_default(const char* name, Value& value, const Value& usual, const Rule& rule) {
    value = usual;
    if (const base::Json* found = member(name)) take(name, *found, value, rule);
  }
  template <typename Value, typename Rule>
  void nullable(const char* name, std::optional<Value>& value, const Rule& rule) {
    optional(name, value, rule);
  }
  // What holds between fields.
  void judge(bool fits, std::string_view otherwise) {
    if (!error_ && !fits) refuse(std::string(otherwise));
  }

  const std::optional<base::Error>& error() const { return error_; }

 private:
  const base::Json* member(const char* name) const {
    if (error_) return nullptr;
    const auto found = in_.find(name);
    return found == in_.end() || found->is_null() ? nullptr : &*found;
  }
  template <typename Value, typename Rule>
  void take(const char* name, const base::Json& json, Value& value, const Rule& rule) {
    auto read = rule.read(json);
    if (read)
      value = static_cast<Value>(*std::move(read));
    else
      refuse(std::string("\"") + name + "\" " + read.error().message);
  }
  void refuse(std::string why) { error_ = base::Error{base::ErrorCode::kInvalid, std::move(why)}; }

  const base::Json& in_;
  std::optional<base::Error> error_;
};

// The bodies of to_json and from_json, for the files that describe messages.
template <typename Message>
base::Json write_fields(const Message& message) {
  FieldWriter writer;
  fields(writer, message);
  return std::move(writer.out);
}
// `message`: what is known of it already.
template <typename Message>
base::Result<Message> read_fields(const base::Json& json, Message message = {}) {
  FieldReader reader(json);
  fields(reader, message);
  if (reader.error()) return *reader.error();
  return message;
}
#define WIRE_FIELDS(Message)                                \
  template <>                                               \
  base::Json to_json(const Message& message) {              \
    return write_fields(message);                           \
  }                                                         \
  template <>                                               \
  base::Result<Message> from_json(const base::Json& json) { \
    return read_fields<Message>(json);                      \
  }

}  // namespace wire
