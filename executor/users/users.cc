#include "executor/users/users.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <tuple>

#include "libs/base/files.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

constexpr std::size_t kEtcFileBytesMax = 4u << 20;

std::string from_environment(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : std::move(otherwise);
}

std::optional<std::uint32_t> parse_id(std::string_view text) {
  const auto number = base::parse_integer(text);
  if (!number || *number < 0 || *number >= UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

std::vector<User> parse_passwd(std::string_view text) {
  std::vector<User> users;
  for (const std::string& line : base::split(text, '\n')) {
    const auto fields = base::split(line, ':');
    if (fields.size() < 7 || fields[0].empty() || fields[0][0] == '#') continue;
    const auto uid = parse_id(fields[2]);
    const auto gid = parse_id(fields[3]);
    if (uid && gid) users.push_back({fields[0], *uid, *gid, fields[5], fields[6], {*gid}});
  }
  return users;
}

std::vector<Group> parse_groups(std::string_view text) {
  std::vector<Group> groups;
  for (const std::string& line : base::split(text, '\n')) {
    const auto fields = base::split(line, ':');
    if (fields.size() < 4 || fields[0].empty() || fields[0][0] == '#') continue;
    const auto gid = parse_id(fields[2]);
    if (!gid) continue;
    Group group{fields[0], *gid};
    for (const std::string& member : base::split(fields[3], ','))
      if (!member.empty()) group.members.push_back(member);
    groups.push_back(std::move(group));
  }
  return groups;
}

bool may_switch_users() {
  if (::geteuid() != 0) return false;
  const auto map = base::read_file("/proc/self/uid_map");
  if (!map) return true;
  std::int64_t mapped = 0;
  for (const std::string& line : base::split(*map, '\n')) {
    const auto last = line.rfind(' ');
    if (last != std::string::npos)
      mapped += base::parse_integer(std::string_view(line).substr(last + 1)).value_or(0);
  }
  return mapped > 1;
}

namespace {

// What the lines of one file say, read anew when the file is another than before.
template <typename Row>
class Table {
 public:
  using Rows = std::shared_ptr<const std::vector<Row>>;
  using Parser = std::vector<Row> (*)(std::string_view);

  Table(std::filesystem::path file, Parser parse) : file_(std::move(file)), parse_(parse) {}

  Rows rows() {
    const std::lock_guard lock(mutex_);
    struct stat found{};
    const bool there = ::stat(file_.c_str(), &found) == 0;
    const Version version{found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec,
                          found.st_mtim.tv_nsec};
    if (rows_ && there && version == version_) return rows_;
    const auto text = base::read_file(file_, kEtcFileBytesMax);
    version_ = version;
    rows_ = std::make_shared<const std::vector<Row>>(text ? parse_(*text) : std::vector<Row>{});
    return rows_;
  }

 private:
  using Version = std::tuple<dev_t, ino_t, off_t, time_t, long>;

  const std::filesystem::path file_;
  const Parser parse_;
  std::mutex mutex_;
  Version version_;
  Rows rows_;
};

}  // namespace

struct Users::Tables {
  explicit Tables(const std::filesystem::path& etc)
      : users(etc / "passwd", parse_passwd), groups(etc / "group", parse_groups) {}
  Table<User> users;
  Table<Group> groups;
};

Users::Users(std::filesystem::path etc, bool may_switch)
    : tables_(std::make_shared<Tables>(etc)), may_switch_(may_switch) {}

base::Result<User> Users::find(std::string_view name) const {
  const auto users = tables_->users.rows();
  const auto found = std::find_if(users->begin(), users->end(),
                                  [&](const User& user) { return user.name == name; });
  if (!may_switch_) {
    const User self = current();
    // Another name of whom we are, which may have a home of its own.
    if (found != users->end() && found->uid == self.uid && found->name != self.name)
      return User{found->name, self.uid, self.gid, found->home, found->shell, self.groups};
    if (found != users->end() || name == self.name) return self;
  }
  if (found == users->end())
    return base::error(base::ErrorCode::kDenied, "no user is called '", name, "'");
  User user = *found;
  for (const auto groups = tables_->groups.rows(); const Group& group : *groups)
    if (group.gid != user.gid && std::count(group.members.begin(), group.members.end(), user.name))
      user.groups.push_back(group.gid);
  return user;
}

User Users::current() const {
  const uid_t uid = ::geteuid();
  User self{from_environment("USER", std::to_string(uid)),
            uid,
            ::getegid(),
            from_environment("HOME", "/"),
            "/bin/sh",
            {::getegid()}};
  for (const auto users = tables_->users.rows(); const User& user : *users) {
    if (user.uid != uid) continue;
    self.name = user.name;
    self.shell = user.shell;
    // One who cannot become others lives where the environment says: it may be borrowed.
    if (may_switch_) self.home = user.home;
    break;
  }
  return self;
}

std::string Users::usual() const {
  for (const auto users = tables_->users.rows(); const User& user : *users)
    if (user.name == "user") return user.name;
  return current().name;
}

std::string Users::name_of_user(uid_t uid) const {
  for (const auto users = tables_->users.rows(); const User& user : *users)
    if (user.uid == uid) return user.name;
  return std::to_string(uid);
}

std::string Users::name_of_group(gid_t gid) const {
  for (const auto groups = tables_->groups.rows(); const Group& group : *groups)
    if (group.gid == gid) return group.name;
  return std::to_string(gid);
}

}  // namespace executor
