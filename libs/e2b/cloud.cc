#include "libs/e2b/cloud.h"

#include <ostream>

namespace e2b {

std::ostream& operator<<(std::ostream& out, const Handle& handle) {
  const auto shown = [](const std::optional<std::string>& token) {
    return token ? "<hidden>" : "none";
  };
  return out << "Handle{" << handle.id << ", envd " << handle.envd_version << ", envd token "
             << shown(handle.envd_access_token) << ", traffic token "
             << shown(handle.traffic_access_token) << ", domain "
             << handle.domain.value_or("default") << "}";
}

}  // namespace e2b
