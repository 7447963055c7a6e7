#include "local_e2b/box/mounts.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "libs/base/files.h"

namespace local_e2b {

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
    return base::errno_error(user_namespace >= 0 ? "map the owners of" : "set up the mount of",
                             path, errno);
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

}  // namespace local_e2b
