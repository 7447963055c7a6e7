#include "local_e2b/box/user_namespaces.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "libs/base/files.h"
#include "libs/base/strings.h"

namespace local_e2b {
namespace {

constexpr char kCloneSetting[] = "kernel.unprivileged_userns_clone";
constexpr char kAppArmorSetting[] = "kernel.apparmor_restrict_unprivileged_userns";

// The sysctl a.b is the file a/b.
std::optional<std::int64_t> read_sysctl(std::string name) {
  for (char& letter : name)
    if (letter == '.') letter = '/';
  const auto text = base::read_file(std::filesystem::path("/proc/sys") / name);
  return text ? base::parse_integer(base::trim(*text)) : std::nullopt;
}

std::string refused(const char* what, int error_number) {
  return std::string("the kernel refuses ") + what + " (" + std::strerror(error_number) + ")";
}

}  // namespace

UserNamespaceSettings read_user_namespace_settings() {
  return {read_sysctl("user.max_user_namespaces"), read_sysctl(kCloneSetting),
          read_sysctl(kAppArmorSetting)};
}

std::optional<std::string> objection_to_user_namespaces(const NamespaceTrial& trial,
                                                        const UserNamespaceSettings& settings) {
  if (trial.making == 0 && trial.mounting == 0) return std::nullopt;
  if (settings.max_user_namespaces == 0)
    return "user namespaces are off; as root: sysctl -w user.max_user_namespaces=10000";
  if (trial.making == ENOSPC)
    return "all user namespaces are in use; raise user.max_user_namespaces";
  if (settings.unprivileged_userns_clone == 0)
    return std::string("user namespaces are for root only; as root: sysctl -w ") + kCloneSetting +
           "=1";
  if (settings.apparmor_restrict.value_or(0) != 0)
    return std::string(
               "AppArmor keeps ordinary users from using user namespaces; as root: sysctl "
               "-w ") +
           kAppArmorSetting + "=0, or give this program an AppArmor profile with \"userns,\"";
  if (trial.making != 0)
    return refused("a user namespace", trial.making) +
           "; in a container, allow unshare and clone in its seccomp profile";
  return refused("mounting in a user namespace", trial.mounting) +
         "; a security module or the container's seccomp profile forbids it";
}

}  // namespace local_e2b
