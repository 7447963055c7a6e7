#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace local_e2b {

// Boxes get their user ids from 0x70000000 up, above what distributions and systemd hand out and
// within 31 bits.
inline constexpr std::uint32_t kFirstUid = 0x7000'0000;

// The range an id on the host belongs to, or nothing when it is none of a box.
std::optional<std::uint32_t> range_of(uid_t owner);
// The first id of the lowest range that is not taken; nothing when kBoxesMax are.
std::optional<std::uint32_t> free_range(const std::set<std::uint32_t>& taken);

// What uid_map and gid_map say of a box with that range.
std::string id_map(std::uint32_t first);

}  // namespace local_e2b
