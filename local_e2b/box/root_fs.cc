#include "local_e2b/box/root_fs.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "libs/base/fd.h"
#include "libs/base/files.h"

namespace local_e2b {
namespace fs = std::filesystem;
namespace {

constexpr std::uint32_t kRoot = 0, kUser = 1000;
constexpr std::size_t kCopyBytesMax = 4u << 20;  // Of one file of /etc.
constexpr int kCopyDepthMax = 8;

// Writes into a root whose ids start at `base`.
class Planter {
 public:
  Planter(fs::path root, uid_t base) : root_(std::move(root)), base_(base) {}

  base::Result<base::Done> folder(const fs::path& at, mode_t mode, std::uint32_t owner = kRoot) {
    const fs::path target = root_ / at;
    if (::mkdir(target.c_str(), mode) != 0 && errno != EEXIST)
      return base::errno_error("make folder", target, errno);
    if (::chmod(target.c_str(), mode) != 0) return base::errno_error("set mode of", target, errno);
    return own(target, owner);
  }
  // With the folders above it, each 0755.
  base::Result<base::Done> folders(const fs::path& at) {
    fs::path walked;
    for (const fs::path& part : at) {
      walked /= part;
      if (!fs::exists(root_ / walked)) CHECK_OK(folder(walked, 0755));
    }
    return base::Done{};
  }
  base::Result<base::Done> file(const fs::path& at, std::string_view text, mode_t mode,
                                std::uint32_t owner = kRoot) {
    const fs::path target = root_ / at;
    base::Fd opened(
        ::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!opened) return base::errno_error("write", target, errno);
    CHECK_OK(base::write_all(opened.get(), text));
    return own(target, owner);
  }
  base::Result<base::Done> link(const fs::path& to, const fs::path& at) {
    const fs::path target = root_ / at;
    if (::symlink(to.c_str(), target.c_str()) != 0 && errno != EEXIST)
      return base::errno_error("make link", target, errno);
    return own(target, kRoot);
  }
  // A file, link or folder of the host; what not everybody may read is left out.
  base::Result<base::Done> copy(const fs::path& from, const fs::path& at, std::uint32_t owner,
                                int depth = 0);

 private:
  base::Result<base::Done> own(const fs::path& target, std::uint32_t owner) {
    if (::lchown(target.c_str(), base_ + owner, base_ + owner) == 0) return base::Done{};
    return base::errno_error("give away", target, errno);
  }

  const fs::path root_;
  const uid_t base_;
};

base::Result<base::Done> Planter::copy(const fs::path& from, const fs::path& at,
                                       std::uint32_t owner, int depth) {
  struct stat found{};
  if (::lstat(from.c_str(), &found) != 0) return base::Done{};  // Gone since it was listed.
  if (S_ISLNK(found.st_mode)) {
    std::error_code failed;
    const fs::path to = fs::read_symlink(from, failed);
    return failed ? base::Result<base::Done>(base::Done{}) : link(to, at);
  }
  if (!(found.st_mode & S_IROTH)) return base::Done{};
  if (S_ISREG(found.st_mode)) {
    const auto text = base::read_file(from, kCopyBytesMax);
    if (!text) return text.error();
    return file(at, *text, found.st_mode & 0755, owner);
  }
  if (!S_ISDIR(found.st_mode) || depth == kCopyDepthMax) return base::Done{};
  CHECK_OK(folder(at, found.st_mode & 0755, owner));
  std::error_code failed;
  for (fs::directory_iterator entry(from, failed), end; !failed && entry != end;
       entry.increment(failed))
    CHECK_OK(copy(entry->path(), at / entry->path().filename(), owner, depth + 1));
  return base::Done{};
}

base::Result<base::Done> write_folders(Planter& planter) {
  struct Folder {
    const char* at;
    mode_t mode;
    std::uint32_t owner = kRoot;
  };
  static constexpr Folder kFolders[] = {
      {"", 0755},          {"dev", 0755},      {"etc", 0755},     {"etc/ssl", 0755},
      {"home", 0755},      {"media", 0755},    {"mnt", 0755},     {"opt", 0755},
      {"proc", 0555},      {"root", 0700},     {"run", 0755},     {"srv", 0755},
      {"sys", 0555},       {"tmp", 01777},     {"usr", 0755},     {"var", 0755},
      {"var/cache", 0755}, {"var/lib", 0755},  {"var/log", 0755}, {"var/mail", 0755},
      {"var/spool", 0755}, {"var/tmp", 01777}, {"var/opt", 0755}, {"home/user", 0755, kUser},
  };
  for (const Folder& folder : kFolders)
    CHECK_OK(planter.folder(folder.at, folder.mode, folder.owner));
  CHECK_OK(planter.link("/run", "var/run"));
  CHECK_OK(planter.link("/run/lock", "var/lock"));
  CHECK_OK(planter.link("/proc/self/mounts", "etc/mtab"));
  // /bin -> usr/bin and its like, as the host has them.
  for (const char* name : {"bin", "sbin", "lib", "lib32", "lib64", "libx32"}) {
    std::error_code is_no_link;
    const fs::path to = fs::read_symlink(fs::path("/") / name, is_no_link);
    if (!is_no_link) CHECK_OK(planter.link(to, name));
  }
  return base::Done{};
}

base::Result<base::Done> write_etc(Planter& planter, const std::string& id) {
  std::error_code failed;
  for (fs::directory_iterator entry("/etc", failed), end; !failed && entry != end;
       entry.increment(failed))
    if (const fs::path name = entry->path().filename(); shown_of_etc(name))
      CHECK_OK(planter.copy(entry->path(), "etc" / name, kRoot));
  if (fs::exists("/etc/ssl/openssl.cnf"))
    CHECK_OK(planter.copy("/etc/ssl/openssl.cnf", "etc/ssl/openssl.cnf", kRoot));
  // Often a link into /run, of which a box has its own; so its text is copied.
  if (const auto resolvers = base::read_file("/etc/resolv.conf", kCopyBytesMax))
    CHECK_OK(planter.file("etc/resolv.conf", *resolvers, 0644));
  CHECK_OK(planter.file("etc/hostname", id + "\n", 0644));
  CHECK_OK(planter.file(
      "etc/hosts",
      "127.0.0.1\tlocalhost\n127.0.1.1\t" + id + "\n::1\tlocalhost ip6-localhost ip6-loopback\n",
      0644));
  CHECK_OK(planter.file("etc/passwd", passwd_text(), 0644));
  CHECK_OK(planter.file("etc/group", group_text(), 0644));
  CHECK_OK(planter.file("etc/shadow", shadow_text(), 0600));
  CHECK_OK(planter.folder("etc/sudoers.d", 0750));
  return planter.file("etc/sudoers",
                      "Defaults env_reset\nroot ALL=(ALL:ALL) ALL\nuser ALL=(ALL:ALL) NOPASSWD: "
                      "ALL\n@includedir /etc/sudoers.d\n",
                      0440);
}

base::Result<base::Done> write_homes(Planter& planter) {
  std::error_code failed;
  for (fs::directory_iterator entry("/etc/skel", failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const fs::path name = entry->path().filename();
    CHECK_OK(planter.copy(entry->path(), "home/user" / name, kUser));
    CHECK_OK(planter.copy(entry->path(), "root" / name, kRoot));
  }
  return base::Done{};
}

// layers/N/{lower,upper,work}: where the builder puts together the overlay number N.
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

}  // namespace

bool shown_of_etc(const std::string& name) {
  static constexpr const char* kShown[] = {
      "bash.bashrc",
      "bash_completion*",
      "ca-certificates*",
      "debian_version",
      "default",
      "environment",
      "fonts",
      "gai.conf",
      "host.conf",
      "inputrc",
      "issue",
      "java*",
      "ld.so.cache",
      "ld.so.conf",
      "ld.so.conf.d",
      "locale.*",
      "localtime",
      "login.defs",
      "lsb-release",
      "magic*",
      "mime.types",
      "networks",
      "nsswitch.conf",
      "os-release",
      "pam.conf",
      "pam.d",
      "perl",
      "profile",
      "profile.d",
      "protocols",
      "python*",
      "redhat-release",
      "rpc",
      "security",
      "services",
      "shells",
      "skel",
      "terminfo",
      "timezone",
      "vim",
  };
  for (const char* shown : kShown)
    if (::fnmatch(shown, name.c_str(), 0) == 0) return true;
  return false;
}

std::string passwd_text() {
  return "root:x:0:0:root:/root:/bin/bash\n"
         "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
         "user:x:1000:1000:user:/home/user:/bin/bash\n"
         "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
}

std::string group_text() {
  return "root:x:0:\ndaemon:x:1:\ntty:x:5:\nadm:x:4:\nsudo:x:27:user\nshadow:x:42:\nutmp:x:43:\n"
         "staff:x:50:\nusers:x:100:user\nuser:x:1000:\nnogroup:x:65534:\n";
}

std::string shadow_text() {
  // No password opens an account; root inside needs none, and `user` has sudo.
  return "root:*:19700:0:99999:7:::\ndaemon:*:19700:0:99999:7:::\nuser:*:19700:0:99999:7:::\n"
         "nobody:*:19700:0:99999:7:::\n";
}

base::Result<base::Done> write_root(const Blueprint& plan) {
  Planter root(plan.folder / "root", plan.uid_base);
  Planter layers(plan.folder / "layers", plan.uid_base);
  CHECK_OK(write_folders(root));
  CHECK_OK(write_etc(root, plan.id));
  CHECK_OK(write_homes(root));
  return write_layers(layers, root, plan);
}

}  // namespace local_e2b
