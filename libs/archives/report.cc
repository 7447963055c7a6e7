#include "libs/archives/report.h"

#include <utility>

namespace archives {

std::string_view to_word(Remark remark) {
  switch (remark) {
    case Remark::kSpecial:
      return "special";
    case Remark::kUnreadable:
      return "unreadable";
    case Remark::kChanged:
      return "changed";
    case Remark::kTooDeep:
      return "tooDeep";
    case Remark::kLinkMissing:
      return "linkMissing";
    case Remark::kLinkOutward:
      return "linkOutward";
  }
  return "";
}

void Report::add(std::string path, Remark remark) {
  ++remarks;
  std::size_t bytes = path.size();
  for (const Remarked& one : told) bytes += one.path.size();
  if (told.size() < kToldMax && bytes <= kToldBytesMax) told.push_back({std::move(path), remark});
}

}  // namespace archives
