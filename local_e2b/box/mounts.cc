#include "local_e2b/box/mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "libs/base/files.h"
#include "libs/base/strings.h"

namespace local_e2b {
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

base::Result<base::Fd> clone_mount(const std::filesystem::path& path, int user_namespace,
                                   bool read_only) {
  base::Fd mount(::open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!mount) return base::errno_error("clone the mount of", path, errno);
  mount_attr wanted{};
  wanted.propagation = MS_PRIVATE;
  if (read_only) wanted.attr_set |= MOUNT_ATTR_RDONLY;
  if (user_namespace >= 0) {
    wanted.attr_set |= MOUNT_ATTR_IDMAP;
    wanted.userns_fd = static_cast<std::uint64_t>(user_namespace);
  }
  if (::mount_setattr(mount.get(), "", AT_EMPTY_PATH, &wanted, sizeof wanted) != 0)
    return base::errno_error("map the owners of", path, errno);
  return mount;
}

base::Result<base::Done> attach_mount(int mount, const char* target) {
  if (::move_mount(mount, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return base::errno_error("attach a mount at", target, errno);
  return base::Done{};
}

base::Result<base::Done> mount_kind(const char* kind, const char* target, unsigned long flags,
                                    const std::string& options) {
  if (::mount(kind, target, kind, flags, options.c_str()) == 0) return base::Done{};
  return base::errno_error(std::string("mount ") + kind + " at", target, errno);
}

base::Result<base::Done> bind(const char* source, const char* target) {
  if (::mount(source, target, nullptr, MS_BIND, nullptr) == 0) return base::Done{};
  return base::errno_error(std::string("show ") + source + " at", target, errno);
}

base::Result<base::Done> make_read_only(const char* target) {
  mount_attr wanted{};
  wanted.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  if (::mount_setattr(AT_FDCWD, target, 0, &wanted, sizeof wanted) == 0) return base::Done{};
  return base::errno_error("make read-only", target, errno);
}

// "36 35 98:0 /root /mount/point rw,relatime optional... - kind source options"
std::vector<MountPoint> parse_mountinfo(const std::string& text) {
  std::vector<MountPoint> found;
  for (const std::string& line : base::split(text, '\n')) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto front = base::split(line.substr(0, dash), ' ');
    const auto back = base::split(line.substr(dash + 3), ' ');
    if (front.size() < 6 || back.empty()) continue;
    found.push_back({unescape_octal(front[4]), back[0]});
  }
  return found;
}

}  // namespace local_e2b
