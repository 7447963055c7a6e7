#include "libs/manifests/folder.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/yaml/reader.h"

namespace manifests {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::int64_t kNanosecondsOfASecond = 1'000'000'000;

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * kNanosecondsOfASecond + time.tv_nsec;
}

// By the clock that stamps files, whatever clock the rest goes by.
std::int64_t file_clock_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return nanoseconds(now);
}

bool is_manifest(std::string_view name) {
  if (name.starts_with('.')) return false;
  return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json");
}

std::shared_ptr<const Reading> unreadable(const std::string& name, const std::string& why) {
  Reading reading;
  reading.problems.push_back({name, 0, 0, "", why, "make it readable to the controller"});
  return std::make_shared<const Reading>(std::move(reading));
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

}  // namespace

Result<std::vector<std::string>> FolderReader::names() const {
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(folder_.c_str()));
  if (!folder) return base::errno_error("list", folder_, errno);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (!entry && errno != 0) return base::errno_error("list", folder_, errno);
    if (!entry) break;
    if (is_manifest(entry->d_name)) names.emplace_back(entry->d_name);
    if (names.size() > kFilesMax)
      return base::error(ErrorCode::kInvalid, folder_.string(), " holds more than ",
                         std::to_string(kFilesMax), " manifests; put several into one file");
  }
  std::ranges::sort(names);
  return names;
}

FolderReader::Known FolderReader::read(const std::string& name) const {
  const fs::path path = folder_ / name;
  struct stat found{};
  if (::stat(path.c_str(), &found) != 0)
    return {{}, false, unreadable(name, std::string("cannot be read: ") + std::strerror(errno))};
  if (!S_ISREG(found.st_mode)) return {{}, false, unreadable(name, "is not a regular file")};
  Known read;
  read.stamp = {found.st_dev, found.st_ino, static_cast<std::uint64_t>(found.st_size),
                nanoseconds(found.st_mtim), nanoseconds(found.st_ctim)};
  const auto known = known_.find(name);
  if (known != known_.end() && known->second.settled && known->second.stamp == read.stamp)
    return known->second;
  read.settled = file_clock_ns() - read.stamp.changed_ns > 2 * kNanosecondsOfASecond;
  const auto content = base::read_file(path, yaml::kFileBytesMax + 1);
  if (!content && content.error().code != ErrorCode::kInvalid)
    return {{}, false, unreadable(name, content.error().message)};
  // A file that is too large fails in the reader, which says so.
  const std::string text = content ? *content : std::string(yaml::kFileBytesMax + 1, ' ');
  read.digest = base::sha256(text);
  if (known != known_.end() && known->second.digest == read.digest)
    read.reading = known->second.reading;
  else
    read.reading = std::make_shared<const Reading>(read_manifest(text, name, space_));
  return read;
}

Result<std::vector<ReadFile>> FolderReader::read_all() {
  TRY(const auto listed, names());
  std::map<std::string, Known> now;
  std::vector<ReadFile> files;
  for (const std::string& name : listed) {
    struct stat found{};
    if (::stat((folder_ / name).c_str(), &found) == 0 && S_ISDIR(found.st_mode)) {
      files.push_back({name, std::make_shared<const Reading>(), true});
      continue;
    }
    Known known = read(name);
    files.push_back({name, known.reading});
    now.emplace(name, std::move(known));
  }
  known_ = std::move(now);
  return files;
}

}  // namespace manifests
