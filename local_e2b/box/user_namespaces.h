#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace local_e2b {

// What this machine says of user namespaces made by ordinary users; nothing where it has no such
// setting.
struct UserNamespaceSettings {
  std::optional<std::int64_t> max_user_namespaces;        // /proc/sys/user
  std::optional<std::int64_t> unprivileged_userns_clone;  // /proc/sys/kernel, of Debian
  std::optional<std::int64_t> apparmor_restrict;          // /proc/sys/kernel, of Ubuntu
};
UserNamespaceSettings read_user_namespace_settings();

// How far a process came that made itself user and mount namespaces: errno, or 0.
struct NamespaceTrial {
  int making = 0;    // The namespaces.
  int mounting = 0;  // The first mount call in them.
};

// Why boxes cannot have user namespaces here, with the cure; nothing when they can.
std::optional<std::string> objection_to_user_namespaces(const NamespaceTrial& trial,
                                                        const UserNamespaceSettings& settings);

}  // namespace local_e2b
