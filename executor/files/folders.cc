#include "executor/files/folders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "executor/files/staging.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

FileResult<std::vector<std::string>> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::string name = at->path().filename().string();
    if (!is_staged_name(name)) names.push_back(std::move(name));
    if (names.size() > kListedEntriesMax) return FileError("list", folder, E2BIG);
  }
  if (failed) return FileError("list", folder, failed.value());
  std::sort(names.begin(), names.end());
  return names;
}

FileResult<base::Done> list_below(const fs::path& folder, unsigned depth, const Users& users,
                                  std::vector<Entry>& entries) {
  TRY(const auto names, names_in(folder));
  for (const std::string& name : names) {
    const std::string path = (folder / name).string();
    const auto entry = stat_entry(path, users);
    if (!entry) continue;  // Gone since its name was read.
    if (entries.size() >= kListedEntriesMax) return FileError("list", folder, E2BIG);
    entries.push_back(*entry);
    if (depth <= 1 || entry->kind != EntryKind::kFolder || entry->symlink_target) continue;
    const auto below = list_below(path, depth - 1, users, entries);
    if (!below && below.error().error_number != ENOENT) return below.error();
  }
  return base::Done{};
}

}  // namespace

FileResult<base::Done> make_parents(const std::string& path, const Users& users,
                                    const User& owner) {
  fs::path walked;
  for (const fs::path& part : fs::path(path)) {
    walked /= part;
    if (::mkdir(walked.c_str(), 0755) == 0) {
      if (users.may_switch() && ::lchown(walked.c_str(), owner.uid, owner.gid) != 0)
        return FileError("give away", walked, errno);
      continue;
    }
    const int why = errno;
    struct stat found{};
    if (::stat(walked.c_str(), &found) != 0) return FileError("make folder", walked, why);
    if (!S_ISDIR(found.st_mode)) return FileError("make folder", walked, ENOTDIR);
  }
  return base::Done{};
}

FileResult<base::Done> make_folder(const std::string& path, const Users& users, const User& owner) {
  struct stat found{};
  if (::stat(path.c_str(), &found) == 0)
    return FileError("make folder", path, S_ISDIR(found.st_mode) ? EEXIST : ENOTDIR);
  return make_parents(path, users, owner);
}

FileResult<base::Done> move_entry(const std::string& from, const std::string& to,
                                  const Users& users, const User& owner) {
  struct stat found{};
  if (::lstat(from.c_str(), &found) != 0) return FileError("move", from, errno);
  if (const auto made = make_parents(fs::path(to).parent_path().string(), users, owner); !made)
    return made.error();
  if (::rename(from.c_str(), to.c_str()) == 0) return base::Done{};
  return FileError("move " + from + " to", to, errno);
}

FileResult<std::vector<Entry>> list_folder(const std::string& path, unsigned depth,
                                           const Users& users) {
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0) return FileError("list", path, errno);
  if (!S_ISDIR(found.st_mode)) return FileError("list", path, ENOTDIR);
  std::vector<Entry> entries;
  if (const auto listed = list_below(path, depth == 0 ? 1 : depth, users, entries); !listed)
    return listed.error();
  return entries;
}

}  // namespace executor
