#include "local_e2b/box/uid_ranges.h"

#include "local_e2b/box/box.h"

namespace local_e2b {

std::optional<std::uint32_t> range_of(uid_t owner) {
  if (owner < kFirstUid || (owner - kFirstUid) / kUidsPerBox >= kBoxesMax) return std::nullopt;
  return owner - owner % kUidsPerBox;
}

std::optional<std::uint32_t> free_range(const std::set<std::uint32_t>& taken) {
  for (std::size_t number = 0; number < kBoxesMax; ++number) {
    const std::uint32_t first = kFirstUid + static_cast<std::uint32_t>(number) * kUidsPerBox;
    if (!taken.contains(first)) return first;
  }
  return std::nullopt;
}

std::string id_map(std::uint32_t first) {
  return "0 " + std::to_string(first) + " " + std::to_string(kUidsPerBox);
}

}  // namespace local_e2b
