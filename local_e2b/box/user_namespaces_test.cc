#include "local_e2b/box/user_namespaces.h"

#include <gmock/gmock.h>

#include <cerrno>

namespace local_e2b {
namespace {

using testing::HasSubstr;

TEST(UserNamespaces, AreMissedByTheNameOfWhatForbidsThem) {
  struct Case {
    const char* name;
    NamespaceTrial trial;
    UserNamespaceSettings settings;
    const char* objection;  // Empty: none.
  };
  const Case kCases[] = {
      {"works", {0, 0}, {96'365, {}, {}}, ""},
      {"works_all_the_same", {0, 0}, {96'365, 0, 1}, ""},
      {"off", {ENOSPC, 0}, {0, 1, 0}, "sysctl -w user.max_user_namespaces=10000"},
      {"used_up", {ENOSPC, 0}, {5, 1, 1}, "all user namespaces are in use"},
      {"debian", {EPERM, 0}, {96'365, 0, {}}, "sysctl -w kernel.unprivileged_userns_clone=1"},
      {"ubuntu", {0, EACCES}, {96'365, 1, 1}, "AppArmor"},
      {"ubuntu_cure", {0, EACCES}, {96'365, {}, 1}, "restrict_unprivileged_userns=0"},
      {"container", {EPERM, 0}, {96'365, {}, {}}, "seccomp profile"},
      {"module", {0, EPERM}, {96'365, 1, 0}, "mounting in a user namespace (Operation not"},
  };
  for (const Case& each : kCases) {
    const auto objection = objection_to_user_namespaces(each.trial, each.settings);
    EXPECT_EQ(objection.has_value(), *each.objection != '\0') << each.name;
    if (objection) EXPECT_THAT(*objection, HasSubstr(each.objection)) << each.name;
  }
}

}  // namespace
}  // namespace local_e2b
