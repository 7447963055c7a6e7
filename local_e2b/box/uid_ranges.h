#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace local_e2b {

inline constexpr std::uint32_t kUidsPerBox = 65536;
// Boxes of the host's root get their user ids from 0x70000000 up, above what distributions and
// systemd hand out and within 31 bits.
inline constexpr std::uint32_t kFirstUid = 0x7000'0000;

// Whose a box's files and processes are on the host: root inside is `uid` and `gid`, and further
// ids go up from there. With a count of 1 everybody inside is root.
struct BoxIds {
  uid_t uid = 0;
  gid_t gid = 0;
  std::uint32_t count = kUidsPerBox;

  bool single() const { return count == 1; }
  uid_t uid_of(std::uint32_t inside) const { return single() ? uid : uid + inside; }
  gid_t gid_of(std::uint32_t inside) const { return single() ? gid : gid + inside; }
  // What uid_map and gid_map say of the box.
  std::string uid_map() const;
  std::string gid_map() const;
  bool operator==(const BoxIds&) const = default;
};
BoxIds range_from(std::uint32_t first);
BoxIds own_ids();  // This process's own, and no other.

// The first id of the range that an id on the host belongs to, or nothing when it is none of a box.
std::optional<std::uint32_t> range_of(uid_t owner);
// The first id of the lowest range that is not taken; nothing when kBoxesMax are.
std::optional<std::uint32_t> free_range(const std::set<std::uint32_t>& taken);

}  // namespace local_e2b
