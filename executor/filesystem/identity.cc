#include "executor/filesystem/identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <deque>

#include "executor/files/path.h"
#include "executor/filesystem/seam.h"
#include "executor/filesystem/walk.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

constexpr int kLinksMax = 40;  // As the kernel allows (path_resolution(7)).

FsResult<std::string> read_link(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
  if (size < 0) return FsError("follow", path, errno);
  return std::string(target, static_cast<std::size_t>(size));
}

void put_ahead(std::deque<std::string>& ahead, std::string_view path) {
  std::vector<std::string> names = base::split(path, '/');
  std::erase_if(names, [](const std::string& name) { return name.empty() || name == "."; });
  ahead.insert(ahead.begin(), names.begin(), names.end());
}

}  // namespace

FsResult<std::string> absolute_path(const FileAddress& address) {
  if (base::trim(address.path).empty())
    return fs_error(FsCode::kNotFound, "a blank path names nothing");
  if (address.path.find('\0') != std::string::npos || address.cwd.find('\0') != std::string::npos)
    return fs_error(FsCode::kNotFound, "a path with a zero byte in it names nothing");
  if (address.path.front() == '/') return clean_path(address.path);
  if (!address.cwd.starts_with('/'))
    return fs_error(FsCode::kNotFound, "no folder is known that '", address.path, "' goes by");
  return clean_path(std::filesystem::path(address.cwd) / address.path);
}

FsResult<std::string> canonical_path(const std::string& absolute) {
  std::deque<std::string> ahead;
  put_ahead(ahead, absolute);
  std::string at;  // Without links; empty at the root.
  int links = 0;
  bool missing = false;
  while (!ahead.empty()) {
    const std::string name = std::move(ahead.front());
    ahead.pop_front();
    if (name == "..") {
      at.resize(at.empty() ? 0 : at.rfind('/'));
      missing = false;
      continue;
    }
    const std::string next = below(at, name);
    struct stat found{};
    if (!missing && ::lstat(next.c_str(), &found) != 0) {
      if (errno != ENOENT) return FsError("resolve", next, errno);
      missing = true;
    }
    if (!missing && S_ISLNK(found.st_mode)) {
      if (++links > kLinksMax) return FsError("resolve", absolute, ELOOP);
      TRY(const std::string target, read_link(next));
      if (target.starts_with('/')) at.clear();
      put_ahead(ahead, target);
      continue;
    }
    if (!missing && !S_ISDIR(found.st_mode) && !ahead.empty())
      return FsError("resolve", absolute, ENOTDIR);
    at = next;
  }
  return at.empty() ? "/" : at;
}

FsResult<Target> locate(const FileAddress& address) {
  TRY(const std::string absolute, absolute_path(address));
  if (address.is_target) {
    if (absolute != address.path)
      return fs_error(FsCode::kNotFound, "'", address.path, "' is no target: not a clean path");
    return Target{absolute, absolute};
  }
  TRY(const std::string key, canonical_path(absolute));
  reached(Step::kLocated, key);
  return Target{key, absolute};
}

FsResult<Target> locate_entry(const FileAddress& address) {
  TRY(const std::string absolute, absolute_path(address));
  if (address.is_target || absolute == "/") return locate(address);
  const auto [parent, name] = parent_and_name(absolute);
  TRY(const std::string folder, canonical_path(parent));
  const std::string key = below(folder, name);
  reached(Step::kLocated, key);
  return Target{key, absolute};
}

std::string process_path(const Target& target) { return target.key; }

std::string file_url(const Target& target) {
  std::string url = "file://";
  for (const std::string& segment : base::split(target.key.substr(1), '/'))
    url += "/" + base::percent_encode(segment);
  return url;
}

bool contains(const Target& parent, const Target& child) {
  return is_within(child.key, parent.key);
}

}  // namespace executor
