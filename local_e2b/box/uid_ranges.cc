#include "local_e2b/box/uid_ranges.h"

#include <unistd.h>

#include "local_e2b/box/box.h"

namespace local_e2b {
namespace {

std::string map_from(std::uint32_t first, std::uint32_t count) {
  return "0 " + std::to_string(first) + " " + std::to_string(count);
}

}  // namespace

std::string BoxIds::uid_map() const { return map_from(uid, count); }
std::string BoxIds::gid_map() const { return map_from(gid, count); }

BoxIds range_from(std::uint32_t first) { return {first, first, kUidsPerBox}; }

BoxIds own_ids() { return {::geteuid(), ::getegid(), 1}; }

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

}  // namespace local_e2b
