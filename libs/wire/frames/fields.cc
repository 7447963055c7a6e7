#include "libs/wire/frames/fields.h"

#include <limits>

#include "libs/base/crypto.h"
#include "libs/base/utf8.h"

namespace wire {
namespace {

std::string range(std::string_view kind, std::size_t min, std::size_t max) {
  return std::string(kind) + " of " + std::to_string(min) + " to " + std::to_string(max) + " bytes";
}

bool within(const std::string& text, std::size_t min, std::size_t max) {
  return text.size() >= min && text.size() <= max;
}

// The bytes, or nothing when the JSON is of neither form.
std::optional<std::string> bytes_of(const base::Json& json) {
  if (json.is_string()) return json.get<std::string>();
  const auto encoded = base::text_at(json, "b64");
  if (!encoded || json.size() != 1) return std::nullopt;
  auto decoded = base::from_base64(*encoded);
  if (!decoded) return std::nullopt;
  return *std::move(decoded);
}

}  // namespace

base::Error must_be(std::string_view what) {
  return base::error(base::ErrorCode::kInvalid, "must be ", what);
}

base::Result<std::string> Text::read(const base::Json& json) const {
  if (json.is_string())
    if (auto text = json.get<std::string>(); within(text, bytes_min, bytes_max)) return text;
  return must_be(range("a text", bytes_min, bytes_max));
}

base::Json Name::write(const std::string& bytes) const {
  if (base::is_utf8(bytes)) return bytes;
  return {{"b64", base::to_base64(bytes)}};
}

base::Result<std::string> Name::read(const base::Json& json) const {
  auto bytes = bytes_of(json);
  if (!bytes || !within(*bytes, bytes_min, bytes_max))
    return must_be(range("a text or {\"b64\"}", bytes_min, bytes_max));
  if (bytes->find('\0') != std::string::npos) return must_be("without NUL");
  return *std::move(bytes);
}

base::Result<std::int64_t> Number::read(const base::Json& json) const {
  // An unsigned number beyond the signed ones would come out negative.
  const bool fits = json.is_number_unsigned()
                        ? json.get<std::uint64_t>() <= static_cast<std::uint64_t>(kCountMax)
                        : json.is_number_integer();
  if (fits)
    if (const auto number = json.get<std::int64_t>(); number >= min && number <= max) return number;
  return must_be("a whole number from " + std::to_string(min) + " to " + std::to_string(max));
}

base::Result<std::uint32_t> Id::read(const base::Json& json) const {
  TRY(const auto number, (Number{1, std::numeric_limits<std::uint32_t>::max()}.read(json)));
  return static_cast<std::uint32_t>(number);
}

base::Result<std::string> Handle::read(const base::Json& json) const {
  static constexpr std::string_view kAllowed =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz-";
  if (json.is_string())
    if (auto handle = json.get<std::string>();
        handle.size() >= 16 && handle.size() <= 64 &&
        handle.find_first_not_of(kAllowed) == std::string::npos)
      return handle;
  return must_be("16 to 64 of A-Z a-z 0-9 _ -");
}

base::Result<bool> Flag::read(const base::Json& json) const {
  if (json.is_boolean()) return json.get<bool>();
  return must_be("true or false");
}

base::Result<base::Json> AnyObject::read(const base::Json& json) const {
  if (json.is_object()) return json;
  return must_be("an object");
}

}  // namespace wire
