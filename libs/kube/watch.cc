#include "libs/kube/watch.h"

#include <algorithm>

#include "libs/base/strings.h"

namespace kube {

using base::error;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

std::optional<WatchEvent::Kind> kind_of(const std::string& word) {
  constexpr std::pair<std::string_view, WatchEvent::Kind> kWords[] = {
      {"ADDED", WatchEvent::Kind::kAdded},     {"MODIFIED", WatchEvent::Kind::kModified},
      {"DELETED", WatchEvent::Kind::kDeleted}, {"BOOKMARK", WatchEvent::Kind::kBookmark},
      {"ERROR", WatchEvent::Kind::kError},
  };
  for (const auto& [known, kind] : kWords)
    if (known == word) return kind;
  return std::nullopt;
}

Result<WatchEvent> read_event(std::string_view line) {
  auto json = base::parse_json(line);
  if (!json) return error(ErrorCode::kUnavailable, "an event is not JSON");
  const auto kind = kind_of(base::text_at(*json, "type").value_or(""));
  if (!kind || !base::object_at(*json, "object"))
    return error(ErrorCode::kUnavailable, "an event has no known type or no object");
  return WatchEvent{*kind, std::move((*json)["object"])};
}

bool is_number(std::string_view text) {
  return !text.empty() && text[0] != '0' &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Result<bool> WatchDecoder::feed(std::string_view bytes,
                                const std::function<bool(WatchEvent&&)>& take) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (line_.size() + piece.size() > kWatchLineMax)
      return error(ErrorCode::kUnavailable, "an event is larger than ",
                   std::to_string(kWatchLineMax), " bytes");
    line_.append(piece);
    if (end == std::string_view::npos) return true;
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    if (base::trim(line).empty()) continue;
    TRY(WatchEvent event, read_event(line));
    if (!take(std::move(event))) return false;
  }
  return true;
}

bool ends_initial_events(const WatchEvent& event) {
  if (event.kind != WatchEvent::Kind::kBookmark) return false;
  const Json* metadata = base::object_at(event.object, "metadata");
  const Json* annotations = metadata ? base::object_at(*metadata, "annotations") : nullptr;
  return annotations && base::text_at(*annotations, "k8s.io/initial-events-end") == "true";
}

std::string resource_version_of(const Json& object) {
  const Json* metadata = base::object_at(object, "metadata");
  return metadata ? base::text_at(*metadata, "resourceVersion").value_or("") : "";
}

api::Metadata identity_of(const Json& object) {
  api::Metadata identity;
  const Json* metadata = base::object_at(object, "metadata");
  if (!metadata) return identity;
  identity.key = {base::text_at(*metadata, "namespace").value_or(""),
                  base::text_at(*metadata, "name").value_or("")};
  identity.uid = base::text_at(*metadata, "uid").value_or("");
  identity.resource_version = base::text_at(*metadata, "resourceVersion").value_or("");
  return identity;
}

std::optional<bool> is_older(std::string_view one, std::string_view other) {
  if (!is_number(one) || !is_number(other)) return std::nullopt;
  return one.size() != other.size() ? one.size() < other.size() : one < other;
}

}  // namespace kube
