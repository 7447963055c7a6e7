#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libs/base/clock.h"

// How a GET of a file is to be answered, from its request headers and what the file is: RFC 9110
// §12.5.3 (Accept-Encoding), §13 (If-*) and §14 (Range, one range).
namespace executor {

struct DownloadAsk {
  std::optional<std::string> accept_encoding, range, if_range;
  std::optional<std::string> if_match, if_none_match, if_modified_since, if_unmodified_since;
};

struct FileFacts {
  std::int64_t size = 0;
  base::WallTime modified;
  std::string etag;  // With its quotes.
};

struct DownloadPlan {
  int status = 200;  // 200, 206, 304, 406, 412 or 416.
  std::int64_t offset = 0, length = 0;
  bool gzip = false;
  bool operator==(const DownloadPlan&) const = default;
};

DownloadPlan plan_download(const DownloadAsk& ask, const FileFacts& file);
std::string content_type_of(std::string_view file_name);
// "inline; filename=..." with the name in both forms of RFC 6266.
std::string content_disposition(std::string_view file_name);

}  // namespace executor
