#include "local_e2b/box/etc.h"

#include <fnmatch.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <vector>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/folder.h"
#include "libs/base/log.h"
#include "local_e2b/box/planter.h"
#include "local_e2b/box/remove_tree.h"

namespace local_e2b {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kResolversBytesMax = 64 << 10;

// The first line of an id names it: with a single one, whoami says root.
std::string passwd(const std::string& user) {
  return "root:x:0:0:root:/root:/bin/bash\n"
         "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
         "user:x:" +
         user + ":" + user +
         ":user:/home/user:/bin/bash\n"
         "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
}
std::string group(const std::string& user) {
  return "root:x:0:\ndaemon:x:1:\nadm:x:4:\ntty:x:5:\nsudo:x:27:user\nshadow:x:42:\nutmp:x:43:\n"
         "staff:x:50:\nusers:x:100:user\nuser:x:" +
         user + ":\nnogroup:x:65534:\n";
}
// No password opens an account: root inside needs none, and `user` has sudo.
constexpr char kShadow[] =
    "root:*:19700:0:99999:7:::\ndaemon:*:19700:0:99999:7:::\nuser:*:19700:0:99999:7:::\n"
    "nobody:*:19700:0:99999:7:::\n";
constexpr char kSudoers[] =
    "Defaults env_reset\nroot ALL=(ALL:ALL) ALL\nuser ALL=(ALL:ALL) NOPASSWD: ALL\n"
    "@includedir /etc/sudoers.d\n";

base::Result<base::Done> plant(Planter& etc, bool single) {
  CHECK_OK(etc.folder("", 0755));
  std::set<fs::path> shown;
  for (const fs::path& entry : base::entries_of("/etc"))
    if (shown_of_etc(entry.filename())) shown.insert(entry.filename());
  for (const fs::path& name : shown) CHECK_OK(etc.copy("/etc" / name, name));
  CHECK_OK(etc.folder("ssl", 0755));
  for (const char* part : {"ssl/certs", "ssl/openssl.cnf"})
    CHECK_OK(etc.copy(fs::path("/etc") / part, part));
  // Often a link into /run, of which a box has its own; so its text is copied.
  if (const auto resolvers = base::read_file("/etc/resolv.conf", kResolversBytesMax))
    CHECK_OK(etc.file("resolv.conf", *resolvers, 0644));
  CHECK_OK(etc.link("/proc/self/mounts", "mtab"));
  const std::string user = std::to_string(single ? kRootInside : kUserInside);
  CHECK_OK(etc.file("passwd", passwd(user), 0644));
  CHECK_OK(etc.file("group", group(user), 0644));
  CHECK_OK(etc.file("shadow", kShadow, 0600));
  CHECK_OK(etc.folder("sudoers.d", 0750));
  return etc.file("sudoers", kSudoers, 0440);
}

void remove_unused(const fs::path& copies, const fs::path& boxes, const fs::path& current) {
  std::set<fs::path> used{current};
  for (const fs::path& box : base::entries_of(boxes)) {
    std::error_code no_link;
    used.insert(fs::read_symlink(box / kEtcLink, no_link));
  }
  for (const fs::path& copy : base::entries_of(copies))
    if (!used.contains(copy))
      if (const auto removed = remove_tree(copy); !removed)
        base::log::warn("old copy of /etc stays", {{"why", removed.error()}});
}

}  // namespace

bool shown_of_etc(const std::string& name) {
  static constexpr const char* kShown[] = {
      "alternatives",
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

base::Result<fs::path> prepare_etc(const fs::path& state, const fs::path& boxes, bool single) {
  const fs::path copies = state / "etc";
  CHECK_OK(base::make_folders(copies, 0700));
  Planter sketch({}, own_ids());
  CHECK_OK(plant(sketch, single));
  const fs::path copy = copies / sketch.digest();
  remove_unused(copies, boxes, copy);
  // Boxes may look at one that is there, and it has the same content.
  if (fs::exists(copy)) return copy;
  const fs::path staged = copies / (".new-" + base::random_hex(6));
  Planter etc(staged, own_ids());
  CHECK_OK(plant(etc, single));
  if (::rename(staged.c_str(), copy.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST)
    return base::errno_error("place", copy, errno);
  return copy;
}

}  // namespace local_e2b
