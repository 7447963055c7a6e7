#include "executor/filesystem/names.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <queue>

#include "executor/files/staging.h"

namespace executor {

FileResult<base::Done> for_each_name(const base::Fd& folder, const std::string& path,
                                     const std::function<bool(const std::string&)>& each) {
  // Opened anew, so that it begins at the beginning and `folder` stays open.
  base::Fd own(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!own) return FileError("list", path, errno);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(own.get()), ::closedir);
  if (!stream) return FileError("list", path, errno);
  static_cast<void>(own.release());
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (!entry && errno != 0) return FileError("list", path, errno);
    if (!entry) return base::Done{};
    const std::string name = entry->d_name;
    if (name != "." && name != ".." && !each(name)) return base::Done{};
  }
}

FileResult<std::vector<std::string>> first_names(const base::Fd& folder, const std::string& path,
                                                 const NameRange& range, std::size_t count_max) {
  std::priority_queue<std::string> first;  // The last of them on top.
  const auto each = [&](const std::string& name) {
    const bool within = name > range.from || (range.with_from && name == range.from);
    const auto excludes = range.excludes;
    if (!within || is_staged_name(name) ||
        std::find(excludes.begin(), excludes.end(), name) != excludes.end())
      return true;
    if (first.size() < count_max) {
      first.push(name);
    } else if (name < first.top()) {
      first.pop();
      first.push(name);
    }
    return true;
  };
  CHECK_OK(for_each_name(folder, path, each));
  std::vector<std::string> names;
  for (; !first.empty(); first.pop()) names.push_back(first.top());
  std::reverse(names.begin(), names.end());
  return names;
}

}  // namespace executor
