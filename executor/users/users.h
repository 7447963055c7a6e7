#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/result.h"

// Who a request acts as. /etc/passwd and /etc/group are read here and not through the C library,
// whose look-ups need plug-ins that a static program does not have.
namespace executor {

struct User {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home;
  std::string shell;
  std::vector<gid_t> groups = {};  // All of them, the primary one first.
  bool operator==(const User&) const = default;
};

struct Group {
  std::string name;
  gid_t gid = 0;
  std::vector<std::string> members = {};
  bool operator==(const Group&) const = default;
};

// Lines that make no sense are skipped, as the C library does.
std::vector<User> parse_passwd(std::string_view text);
std::vector<Group> parse_groups(std::string_view text);

// Whether this process may become any of a box's users: it is root and has more than one uid.
bool may_switch_users();

class Users {
 public:
  // `etc` holds passwd and group. Each look-up sees whether they have changed, for a command may
  // have added a user, and reads only then. Without `may_switch`, each known name stands for whom
  // this process runs as; a second name of that uid has its own home and shell.
  Users(std::filesystem::path etc, bool may_switch);

  // kDenied when there is no such user.
  base::Result<User> find(std::string_view name) const;
  User current() const;  // Whom this process runs as.
  // The user of requests that name none, when nobody said otherwise: "user", else current().
  std::string usual() const;
  bool may_switch() const { return may_switch_; }

  std::string name_of_user(uid_t uid) const;   // The number when it has no name.
  std::string name_of_group(gid_t gid) const;  // The number when it has no name.

 private:
  struct Tables;

  std::shared_ptr<Tables> tables_;  // Safe to use from several threads.
  bool may_switch_;
};

}  // namespace executor
