#include "executor/confine/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "libs/base/files.h"

namespace executor {
namespace {

// From Linux 6.12, include/uapi/linux/landlock.h; older headers end before them.
constexpr std::uint64_t kAccessTruncate = 1ULL << 14;  // ABI 3.
constexpr std::uint64_t kScopeAbstractSockets = 1ULL << 0;
constexpr std::uint64_t kScopeSignals = 1ULL << 1;
struct RulesetAttributes {
  std::uint64_t handled_access_fs = 0;
  std::uint64_t handled_access_net = 0;
  std::uint64_t scoped = 0;
};
constexpr int kScopingAbi = 6;

constexpr std::uint64_t kChangeFile = LANDLOCK_ACCESS_FS_WRITE_FILE | kAccessTruncate;
constexpr std::uint64_t kChange =
    kChangeFile | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
    LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER;

// What a program writes to without changing anything that stays. Other terminals are behind
// /dev/pts: opening one's own by its name must work.
constexpr const char* kDevices[] = {"/dev/null", "/dev/zero",    "/dev/full", "/dev/random",
                                    "/dev/tty",  "/dev/urandom", "/dev/ptmx", "/dev/pts"};

base::Result<base::Done> allow(int ruleset, const std::string& path, std::uint64_t access) {
  const base::Fd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place && errno == ENOENT) return base::Done{};
  struct stat found{};
  if (!place || ::fstat(place.get(), &found) != 0)
    return base::errno_error("allow changes below", path, errno);
  landlock_path_beneath_attr rule{};
  rule.allowed_access = S_ISDIR(found.st_mode) ? access : access & kChangeFile;
  rule.parent_fd = place.get();
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    return base::errno_error("allow changes below", path, errno);
  return base::Done{};
}

}  // namespace

int landlock_abi() {
  const long abi =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

std::optional<std::string> why_unconfinable(PermissionMode mode, int abi) {
  if (mode == PermissionMode::kDangerFullAccess || abi >= kScopingAbi) return std::nullopt;
  const std::string wanted = "holding programs to " + std::string(wire::to_word(mode)) +
                             " takes a kernel with Landlock 6 (Linux 6.12)";
  if (abi <= 0) return wanted + "; this one has no Landlock, or it is switched off";
  return wanted + "; this one has Landlock " + std::to_string(abi);
}

base::Result<base::Fd> make_confinement(const Permission& permission) {
  if (permission.mode == PermissionMode::kDangerFullAccess) return base::Fd();
  if (const auto why = why_unconfinable(permission.mode, landlock_abi()))
    return base::error(base::ErrorCode::kUnavailable, *why);
  RulesetAttributes attributes;
  attributes.handled_access_fs = kChange;
  attributes.scoped = kScopeAbstractSockets | kScopeSignals;
  base::Fd ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0)));
  if (!ruleset)
    return base::error(base::ErrorCode::kUnavailable,
                       "the kernel makes no Landlock ruleset: ", std::strerror(errno));
  for (const char* device : kDevices) CHECK_OK(allow(ruleset.get(), device, kChangeFile));
  for (const std::string& root : writable_roots(permission))
    CHECK_OK(allow(ruleset.get(), root, kChange));
  return ruleset;
}

bool enter_confinement(int confinement) {
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_landlock_restrict_self, confinement, 0) == 0;
}

}  // namespace executor
