#include "executor/filesystem/version.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "executor/filesystem/walk.h"

namespace executor {
namespace {

// Tells a file from one that had its inode's number before, where the filesystem counts them: times
// alone do not on kernels before 6.13, whose clock for them ticks every few milliseconds.
std::uint32_t generation_of(const base::Fd& place, const std::string& path) {
  const auto file = reopen(place, path, O_RDONLY);
  long generation = 0;
  if (!file || ::ioctl(file->get(), FS_IOC_GETVERSION, &generation) != 0) return 0;
  return static_cast<std::uint32_t>(generation);
}

void append(std::string& version, std::uint64_t number) {
  std::array<char, 17> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  if (!version.empty()) version += '-';
  version.append(digits.data(), end);
}

std::uint64_t nanoseconds(const statx_timestamp& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileResult<FileInfo> look_at(const base::Fd& place, const std::string& path) {
  struct statx found{};
  if (::statx(place.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &found) != 0)
    return FileError("look at", path, errno);
  FileInfo info;
  info.kind = kind_of(found.stx_mode);
  info.size = found.stx_size;
  info.mode = found.stx_mode & 0777;
  info.modified_ms = static_cast<std::int64_t>(nanoseconds(found.stx_mtime) / 1'000'000);
  append(info.version, std::uint64_t{found.stx_dev_major} << 32 | found.stx_dev_minor);
  append(info.version, found.stx_ino);
  append(info.version, found.stx_size);
  append(info.version, nanoseconds(found.stx_mtime));
  append(info.version, nanoseconds(found.stx_ctime));
  if (info.kind == EntryKind::kFile) append(info.version, generation_of(place, path));
  return info;
}

}  // namespace executor
