#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace base {

struct MountPoint {
  std::filesystem::path path;
  std::string kind;
  bool operator==(const MountPoint&) const = default;
};
// Reads the text of /proc/PID/mountinfo; lines that it cannot read are left out.
std::vector<MountPoint> parse_mountinfo(const std::string& text);

}  // namespace base
