#include "libs/archives/pack.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "libs/archives/path.h"
#include "libs/archives/tar.h"

namespace archives {
namespace {

constexpr std::size_t kPieceBytes = 256u << 10;
constexpr std::size_t kNamesAtOnce = 4096;  // Of one folder, in order.
constexpr std::size_t kExtentsMax = 4096;   // A file with more is written as if it had no holes.

using Folder = std::unique_ptr<DIR, int (*)(DIR*)>;

Folder open_folder(int parent, const char* name) {
  const int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR* opened = fd < 0 ? nullptr : ::fdopendir(fd);
  if (fd >= 0 && !opened) ::close(fd);
  return {opened, ::closedir};
}

bool differs(const std::timespec& a, const std::timespec& b) {
  return a.tv_sec != b.tv_sec || a.tv_nsec != b.tv_nsec;
}

// Where the file has data, when it has holes; nothing when it is to be read as it comes.
std::optional<std::vector<Extent>> extents_of(int file, const struct stat& found) {
  if (found.st_blocks * 512 >= found.st_size) return std::nullopt;
  std::vector<Extent> extents;
  for (off_t at = 0; at < found.st_size;) {
    const off_t data = ::lseek(file, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return extents;
    if (data < 0) return std::nullopt;
    const off_t hole = ::lseek(file, data, SEEK_HOLE);
    if (hole <= data || extents.size() == kExtentsMax) return std::nullopt;
    if (data >= found.st_size) return extents;
    at = std::min(hole, found.st_size);
    extents.push_back({static_cast<std::uint64_t>(data), static_cast<std::uint64_t>(at - data)});
  }
  if (extents.size() == 1 && extents[0].bytes == static_cast<std::uint64_t>(found.st_size))
    return std::nullopt;
  return extents;
}

Entry entry_of(std::string path, EntryKind kind, const struct stat& found) {
  return {.path = std::move(path),
          .kind = kind,
          .mode = found.st_mode & 07777,
          .modified = found.st_mtim};
}

class Packer {
 public:
  Packer(const PackOptions& options, const Sink& sink, const std::stop_token& stop)
      : options_(options),
        stop_(stop),
        compressor_(options.level, sink),
        tar_([this](std::string_view bytes) { return compressor_.write(bytes); }),
        buffer_(kPieceBytes, '\0') {}

  Result<Report> pack(const base::Fd& top) {
    struct stat found{};
    Folder folder = open_folder(top.get(), ".");
    if (!folder || ::fstat(::dirfd(folder.get()), &found) != 0)
      return Failure("read", "the folder", errno);
    CHECK_OK(begin(entry_of("./", EntryKind::kFolder, found)));
    CHECK_OK(pack_names(folder.get(), "", 1));
    CHECK_OK(tar_.finish());
    CHECK_OK(compressor_.finish());
    return std::move(report_);
  }

 private:
  Result<base::Done> begin(const Entry& entry) {
    if (stop_.stop_requested()) return cancelled();
    if (++report_.entries > options_.entries_max)
      return too_large("the tree holds more than ", std::to_string(options_.entries_max),
                       " entries");
    return tar_.begin(entry);
  }

  Result<base::Done> pack_names(DIR* folder, const std::string& prefix, std::size_t depth) {
    for (;;) {
      std::vector<std::string> names;
      const bool more = read_names(folder, names, prefix);
      std::sort(names.begin(), names.end());
      for (const std::string& name : names)
        CHECK_OK(pack_entry(::dirfd(folder), name, prefix + name, depth));
      if (!more) return base::Done{};
    }
  }

  // Whether there may be more.
  bool read_names(DIR* folder, std::vector<std::string>& names, const std::string& prefix) {
    while (names.size() < kNamesAtOnce) {
      errno = 0;
      const dirent* entry = ::readdir(folder);
      if (!entry && errno != 0) report_.add(prefix, Remark::kUnreadable);
      if (!entry) return false;
      std::string name = entry->d_name;
      if (name == "." || name == ".." || options_.leaves_out(name)) continue;
      names.push_back(std::move(name));
    }
    return true;
  }

  Result<base::Done> pack_entry(int folder, const std::string& name, const std::string& path,
                                std::size_t depth) {
    struct stat found{};
    if (::fstatat(folder, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) {
      // What has gone meanwhile is not there: no more is to be said.
      if (errno != ENOENT) report_.add(path, Remark::kUnreadable);
      return base::Done{};
    }
    if (path.size() > kPathBytesMax - 1 || depth > kDepthMax) {
      report_.add(path, Remark::kTooDeep);
      return base::Done{};
    }
    if (S_ISDIR(found.st_mode)) return pack_folder(folder, name, path, depth);
    if (S_ISLNK(found.st_mode)) return pack_link(folder, name, path, found);
    if (S_ISREG(found.st_mode)) return pack_file(folder, name, path, found);
    report_.add(path, Remark::kSpecial);
    return base::Done{};
  }

  Result<base::Done> pack_folder(int parent, const std::string& name, const std::string& path,
                                 std::size_t depth) {
    struct stat found{};
    Folder folder = open_folder(parent, name.c_str());
    if (!folder || ::fstat(::dirfd(folder.get()), &found) != 0) {
      report_.add(path, Remark::kUnreadable);
      return base::Done{};
    }
    CHECK_OK(begin(entry_of(path + "/", EntryKind::kFolder, found)));
    return pack_names(folder.get(), path + "/", depth + 1);
  }

  Result<base::Done> pack_link(int folder, const std::string& name, const std::string& path,
                               const struct stat& found) {
    Entry entry = entry_of(path, EntryKind::kSymlink, found);
    entry.link.resize(PATH_MAX);
    const ssize_t size = ::readlinkat(folder, name.c_str(), entry.link.data(), entry.link.size());
    if (size <= 0) {
      report_.add(path, Remark::kUnreadable);
      return base::Done{};
    }
    entry.link.resize(static_cast<std::size_t>(size));
    return begin(entry);
  }

  Result<base::Done> pack_file(int folder, const std::string& name, const std::string& path,
                               struct stat found) {
    const std::pair<dev_t, ino_t> identity(found.st_dev, found.st_ino);
    if (const auto first = links_.find(identity); found.st_nlink > 1 && first != links_.end()) {
      Entry entry = entry_of(path, EntryKind::kHardLink, found);
      entry.link = first->second;
      return begin(entry);
    }
    // What has taken its place since must neither hold us up nor notice.
    const base::Fd file(
        ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!file || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) {
      report_.add(path, Remark::kUnreadable);
      return base::Done{};
    }
    if (found.st_nlink > 1 && links_.size() < kHardLinksMax)
      links_.emplace(std::pair(found.st_dev, found.st_ino), path);
    return pack_content(file, path, found);
  }

  Result<base::Done> pack_content(const base::Fd& file, const std::string& path,
                                  const struct stat& found) {
    Entry entry = entry_of(path, EntryKind::kFile, found);
    entry.size = static_cast<std::uint64_t>(found.st_size);
    const auto extents = extents_of(file.get(), found);
    entry.sparse = extents.has_value();
    if (extents) entry.data = *extents;
    CHECK_OK(begin(entry));
    ++report_.files;
    report_.bytes += entry.size;
    std::uint64_t at = 0;
    std::optional<Remark> remark;
    for (const Extent& extent : extents.value_or(std::vector{Extent{0, entry.size}})) {
      CHECK_OK(write_zeros(extent.offset - at));
      CHECK_OK(write_data(file, extent, remark));
      at = extent.offset + extent.bytes;
    }
    CHECK_OK(write_zeros(entry.size - at));
    struct stat after{};
    if (!remark && (::fstat(file.get(), &after) != 0 || after.st_size != found.st_size ||
                    differs(after.st_mtim, found.st_mtim)))
      remark = Remark::kChanged;
    if (remark) report_.add(path, *remark);
    return base::Done{};
  }

  // Exactly so many bytes, whatever becomes of the file meanwhile.
  Result<base::Done> write_data(const base::Fd& file, const Extent& extent,
                                std::optional<Remark>& remark) {
    for (std::uint64_t done = 0; done < extent.bytes;) {
      if (stop_.stop_requested()) return cancelled();
      const std::size_t count = std::min<std::uint64_t>(buffer_.size(), extent.bytes - done);
      const ssize_t got =
          ::pread(file.get(), buffer_.data(), count, static_cast<off_t>(extent.offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        remark = got < 0 ? Remark::kUnreadable : Remark::kChanged;
        return write_zeros(extent.bytes - done);
      }
      CHECK_OK(tar_.write({buffer_.data(), static_cast<std::size_t>(got)}));
      done += static_cast<std::uint64_t>(got);
    }
    return base::Done{};
  }

  Result<base::Done> write_zeros(std::uint64_t count) {
    if (count == 0) return base::Done{};
    std::fill(buffer_.begin(), buffer_.end(), '\0');
    for (; count > 0; count -= std::min<std::uint64_t>(buffer_.size(), count)) {
      if (stop_.stop_requested()) return cancelled();
      CHECK_OK(tar_.write({buffer_.data(), std::min<std::uint64_t>(buffer_.size(), count)}));
    }
    return base::Done{};
  }

  const PackOptions& options_;
  const std::stop_token& stop_;
  Compressor compressor_;
  TarWriter tar_;
  std::string buffer_;
  std::map<std::pair<dev_t, ino_t>, std::string> links_;  // The first name of each file.
  Report report_;
};

}  // namespace

Result<Report> pack(const base::Fd& folder, const PackOptions& options, const Sink& sink,
                    const std::stop_token& stop) {
  return Packer(options, sink, stop).pack(folder);
}

}  // namespace archives
