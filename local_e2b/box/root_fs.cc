#include "local_e2b/box/root_fs.h"

#include <sys/stat.h>

#include <cerrno>

#include "libs/base/files.h"
#include "libs/base/folder.h"
#include "local_e2b/box/planter.h"

namespace local_e2b {
namespace fs = std::filesystem;
namespace {

base::Result<base::Done> write_folders(Planter& root) {
  struct Folder {
    const char* at;
    mode_t mode;
    std::uint32_t owner = kRootInside;
  };
  static constexpr Folder kFolders[] = {
      {"", 0755},         {"dev", 0755},
      {"etc", 0755},      {"home", 0755},
      {"media", 0755},    {"mnt", 0755},
      {"opt", 0755},      {"proc", 0555},
      {"root", 0700},     {"run", 0755},
      {"srv", 0755},      {"sys", 0555},
      {"tmp", 01777},     {"usr", 0755},
      {"var", 0755},      {"var/cache", 0755},
      {"var/lib", 0755},  {"var/log", 0755},
      {"var/mail", 0755}, {"var/spool", 0755},
      {"var/tmp", 01777}, {"home/user", 0755, kUserInside},
  };
  for (const Folder& folder : kFolders) CHECK_OK(root.folder(folder.at, folder.mode, folder.owner));
  CHECK_OK(root.link("/run", "var/run"));
  CHECK_OK(root.link("/run/lock", "var/lock"));
  // /bin -> usr/bin and its like, as the host has them.
  for (const char* name : {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}) {
    std::error_code is_no_link;
    const fs::path to = fs::read_symlink(fs::path("/") / name, is_no_link);
    if (!is_no_link) CHECK_OK(root.link(to, name));
  }
  return base::Done{};
}

base::Result<base::Done> write_homes(Planter& root) {
  for (const fs::path& entry : base::entries_of("/etc/skel")) {
    CHECK_OK(root.copy(entry, "home/user" / entry.filename(), kUserInside));
    CHECK_OK(root.copy(entry, "root" / entry.filename(), kRootInside));
  }
  return base::Done{};
}

base::Result<base::Done> write_layers(Planter& layers, Planter& root, const Blueprint& plan) {
  std::size_t number = 0;
  for (const Overlay& overlay : overlays_of(plan)) {
    struct stat found{};
    if (::stat(overlay.source.c_str(), &found) != 0)
      return base::errno_error("read", overlay.source, errno);
    const fs::path layer = std::to_string(number++);
    CHECK_OK(layers.folder(layer, 0755));
    CHECK_OK(layers.folder(layer / "lower", 0755));
    CHECK_OK(layers.folder(layer / "work", 0755));
    CHECK_OK(layers.folder(layer / "upper", found.st_mode & 07777));
    CHECK_OK(root.folders(overlay.target));
  }
  return base::Done{};
}

// What differs from box to box lies over the copy of /etc that all share.
base::Result<base::Done> write_names(Planter& layers, const std::string& id) {
  const fs::path etc = std::to_string(kEtcLayer) + "/upper";
  CHECK_OK(layers.file(etc / "hostname", id + "\n", 0644));
  return layers.file(
      etc / "hosts",
      "127.0.0.1\tlocalhost\n127.0.1.1\t" + id + "\n::1\tlocalhost ip6-localhost ip6-loopback\n",
      0644);
}

}  // namespace

base::Result<base::Done> write_root(const Blueprint& plan) {
  Planter root(plan.folder / "root", plan.ids);
  Planter layers(plan.folder / "layers", plan.ids);
  CHECK_OK(write_folders(root));
  CHECK_OK(write_homes(root));
  CHECK_OK(write_layers(layers, root, plan));
  return write_names(layers, plan.id);
}

}  // namespace local_e2b
