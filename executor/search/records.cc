#include "executor/search/records.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "libs/base/crypto.h"
#include "libs/base/json.h"
#include "libs/base/utf8.h"

namespace executor {
namespace {

// {"text": ...} or {"bytes": base64}.
std::optional<std::string> bytes_at(const base::Json& object, const char* key) {
  const base::Json* found = base::object_at(object, key);
  if (!found) return std::nullopt;
  if (auto text = base::text_at(*found, "text")) return text;
  const auto encoded = base::text_at(*found, "bytes");
  if (!encoded) return std::nullopt;
  auto bytes = base::from_base64(*encoded);
  if (!bytes) return std::nullopt;
  return *std::move(bytes);
}

void drop_newline(std::string& line) {
  if (line.ends_with('\n')) line.pop_back();
  if (line.ends_with('\r')) line.pop_back();
}

// Before the byte at which it is to end, so that no character is halved.
void cut_to(std::string& line, std::size_t bytes_max) {
  line.resize(bytes_max);
  const base::Utf8Prefix prefix = base::utf8_prefix(line);
  if (!prefix.broken) line.resize(prefix.bytes);
}

void add_spans(const base::Json& data, wire::SearchLine& line) {
  const base::Json* matches = base::array_at(data, "submatches");
  if (!matches) return;
  const auto end = static_cast<std::int64_t>(line.text->size());
  for (const base::Json& match : *matches) {
    const auto from = base::integer_at(match, "start"), to = base::integer_at(match, "end");
    if (line.spans.size() == wire::kSpansMax || !from || !to || *from > end) return;
    line.spans.emplace_back(*from, std::min(*to, end));
  }
}

}  // namespace

void Records::grow(std::string_view bytes) {
  record_.bytes += bytes;
  const std::size_t held_max = record_.cut ? 2 * kTailBytes : kBytesMax;
  if (record_.bytes.size() <= held_max) return;
  if (!std::exchange(record_.cut, true)) record_.head = record_.bytes.substr(0, kHeadBytes);
  record_.bytes.erase(0, record_.bytes.size() - kTailBytes);
}

std::vector<Record> Records::add(std::string_view bytes) {
  std::vector<Record> whole;
  for (;;) {
    const std::size_t end = bytes.find(separator_);
    grow(bytes.substr(0, end));
    if (end == std::string_view::npos) return whole;
    whole.push_back(std::exchange(record_, {}));
    bytes.remove_prefix(end + 1);
  }
}

std::string path_of(std::string_view told) {
  if (told.starts_with("./")) told.remove_prefix(2);
  return std::string(told);
}

// Behind the text of the line stands its number; the quotes there cannot be part of a text.
std::optional<wire::SearchLine> GrepRecords::read_cut(const Record& record) const {
  const bool match = record.head.starts_with(R"({"type":"match")");
  if (!match && !record.head.starts_with(R"({"type":"context")")) return std::nullopt;
  wire::SearchLine line{.path = path_, .text = "", .context = !match, .cut = true};
  static constexpr std::string_view kNumber = R"(},"line_number":)";
  const std::size_t at = record.bytes.rfind(kNumber);
  if (at != std::string::npos)
    line.line = std::strtoll(record.bytes.c_str() + at + kNumber.size(), nullptr, 10);
  return line;
}

std::optional<wire::SearchLine> GrepRecords::read(const Record& record) {
  if (record.cut) return read_cut(record);
  const auto json = base::parse_json(record.bytes);
  const base::Json* data = json ? base::object_at(*json, "data") : nullptr;
  if (!data) return std::nullopt;
  const std::string type = base::text_at(*json, "type").value_or("");
  if (type == "begin") path_ = path_of(bytes_at(*data, "path").value_or(""));
  if (type != "match" && type != "context") return std::nullopt;
  auto text = bytes_at(*data, "lines");
  if (!text) return std::nullopt;
  drop_newline(*text);
  const bool cut = text->size() > line_bytes_max_;
  if (cut) cut_to(*text, line_bytes_max_);
  wire::SearchLine line{.path = path_,
                        .line = base::integer_at(*data, "line_number"),
                        .offset = base::integer_at(*data, "absolute_offset"),
                        .text = std::move(text),
                        .context = type == "context",
                        .cut = cut};
  add_spans(*data, line);
  return line;
}

}  // namespace executor
