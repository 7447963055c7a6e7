#include "executor/files/download_plan.h"

#include <algorithm>

#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace executor {
namespace {

struct Encodings {
  bool gzip = false;
  bool identity = true;
};

bool refused(const std::vector<std::string>& parts) {
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string parameter = base::lower(base::trim(parts[i]));
    if (!parameter.starts_with("q=0")) continue;
    if (parameter.find_first_not_of("0.", 2) == std::string::npos) return true;
  }
  return false;
}

Encodings acceptable(const std::optional<std::string>& header) {
  Encodings may;
  std::optional<bool> any, gzip, identity;
  for (const std::string& item : base::split(header.value_or(""), ',')) {
    const auto parts = base::split(item, ';');
    const std::string name = base::lower(base::trim(parts[0]));
    if (name == "gzip" || name == "x-gzip") gzip = !refused(parts);
    if (name == "identity") identity = !refused(parts);
    if (name == "*") any = !refused(parts);
  }
  may.gzip = gzip.value_or(false);
  may.identity = identity.value_or(any.value_or(true));
  return may;
}

bool names_tag(std::string_view list, std::string_view etag) {
  for (const std::string& item : base::split(list, ',')) {
    std::string_view tag = base::trim(item);
    if (tag.starts_with("W/")) tag.remove_prefix(2);
    if (tag == "*" || tag == etag) return true;
  }
  return false;
}

std::optional<base::WallTime> date_of(const std::optional<std::string>& header) {
  if (!header) return std::nullopt;
  const auto date = base::parse_http_date(*header);
  return date ? std::optional(*date) : std::nullopt;
}

base::WallTime whole_seconds(base::WallTime time) {
  return std::chrono::floor<std::chrono::seconds>(time);
}

// 304 or 412 when a condition says so, else nothing.
std::optional<int> judge_conditions(const DownloadAsk& ask, const FileFacts& file) {
  const base::WallTime modified = whole_seconds(file.modified);
  if (ask.if_match) {
    if (!names_tag(*ask.if_match, file.etag)) return 412;
  } else if (const auto since = date_of(ask.if_unmodified_since); since && modified > *since) {
    return 412;
  }
  if (ask.if_none_match) {
    if (names_tag(*ask.if_none_match, file.etag)) return 304;
  } else if (const auto since = date_of(ask.if_modified_since); since && modified <= *since) {
    return 304;
  }
  return std::nullopt;
}

bool range_applies(const DownloadAsk& ask, const FileFacts& file) {
  if (!ask.range) return false;
  if (!ask.if_range) return true;
  if (*ask.if_range == file.etag) return true;
  const auto date = date_of(ask.if_range);
  return date && whole_seconds(file.modified) == *date;
}

// Several ranges, other units and what cannot be read are ignored, as the RFC allows.
std::optional<DownloadPlan> plan_range(std::string_view range, std::int64_t size) {
  if (!range.starts_with("bytes=")) return std::nullopt;
  const std::string_view span = base::trim(range.substr(6));
  const auto dash = span.find('-');
  if (dash == std::string_view::npos || span.find(',') != std::string_view::npos)
    return std::nullopt;
  const auto first = base::parse_integer(span.substr(0, dash));
  const auto last = base::parse_integer(span.substr(dash + 1));
  const bool open = dash + 1 == span.size();
  if (dash == 0) {  // "-N": the last N bytes.
    if (!last || *last < 0) return std::nullopt;
    if (*last == 0 || size == 0) return DownloadPlan{.status = 416};
    const std::int64_t length = std::min(*last, size);
    return DownloadPlan{206, size - length, length};
  }
  if (!first || *first < 0 || (!open && (!last || *last < *first))) return std::nullopt;
  if (*first >= size) return DownloadPlan{.status = 416};
  const std::int64_t end = open ? size - 1 : std::min(*last, size - 1);
  return DownloadPlan{206, *first, end - *first + 1};
}

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".avif", "image/avif"},
    {".css", "text/css; charset=utf-8"},
    {".csv", "text/csv; charset=utf-8"},
    {".gif", "image/gif"},
    {".gz", "application/gzip"},
    {".htm", "text/html; charset=utf-8"},
    {".html", "text/html; charset=utf-8"},
    {".jpeg", "image/jpeg"},
    {".jpg", "image/jpeg"},
    {".js", "text/javascript; charset=utf-8"},
    {".json", "application/json"},
    {".md", "text/markdown; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".mp4", "video/mp4"},
    {".pdf", "application/pdf"},
    {".png", "image/png"},
    {".svg", "image/svg+xml"},
    {".tar", "application/x-tar"},
    {".txt", "text/plain; charset=utf-8"},
    {".wasm", "application/wasm"},
    {".webp", "image/webp"},
    {".xml", "text/xml; charset=utf-8"},
    {".yaml", "application/yaml"},
    {".yml", "application/yaml"},
    {".zip", "application/zip"},
};

}  // namespace

DownloadPlan plan_download(const DownloadAsk& ask, const FileFacts& file) {
  if (const auto status = judge_conditions(ask, file)) return {.status = *status};
  const Encodings may = acceptable(ask.accept_encoding);
  if (!may.gzip && !may.identity) return {.status = 406};
  // A range is one of the bytes of the file itself, so it is never compressed.
  if (may.identity && range_applies(ask, file))
    if (const auto plan = plan_range(*ask.range, file.size)) return *plan;
  return {200, 0, file.size, may.gzip};
}

std::string content_type_of(std::string_view file_name) {
  const auto dot = file_name.rfind('.');
  if (dot == std::string_view::npos) return "application/octet-stream";
  const std::string extension = base::lower(file_name.substr(dot));
  for (const auto& [known, type] : kTypes)
    if (known == extension) return std::string(type);
  return "application/octet-stream";
}

std::string content_disposition(std::string_view file_name) {
  std::string plain;
  for (const char c : file_name) plain += c < 0x20 || c > 0x7e || c == '"' || c == '\\' ? '_' : c;
  std::string value = "inline; filename=\"" + plain + "\"";
  if (plain != file_name) value += "; filename*=UTF-8''" + base::percent_encode(file_name);
  return value;
}

}  // namespace executor
