#include "libs/base/mountinfo.h"

#include "libs/base/strings.h"

namespace base {
namespace {

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string unescape_octal(const std::string& text) {
  const auto digit = [&](std::size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '7' ? text[at] - '0' : -1;
  };
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\' && digit(at + 1) >= 0 && digit(at + 2) >= 0 && digit(at + 3) >= 0) {
      plain += static_cast<char>(digit(at + 1) * 64 + digit(at + 2) * 8 + digit(at + 3));
      at += 3;
    } else {
      plain += text[at];
    }
  }
  return plain;
}

}  // namespace

// "36 35 98:0 /root /mount/point rw,relatime optional... - kind source options"
std::vector<MountPoint> parse_mountinfo(const std::string& text) {
  std::vector<MountPoint> found;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto front = split(line.substr(0, dash), ' ');
    const auto back = split(line.substr(dash + 3), ' ');
    if (front.size() < 6 || back.empty()) continue;
    found.push_back({unescape_octal(front[4]), back[0]});
  }
  return found;
}

}  // namespace base
