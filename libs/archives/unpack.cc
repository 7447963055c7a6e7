#include "libs/archives/unpack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>
#include <vector>

#include "libs/archives/path.h"
#include "libs/archives/tar.h"

namespace archives {
namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// What an entry takes in an archive beside its content, as a rule, and what padding may.
constexpr std::uint64_t kEntryBytes = 4096, kEndBytes = 1u << 20;
constexpr const char* kStaged = "staged";  // In `aside`.

using Names = std::vector<std::string>;

// A folder on the way to the entry at hand.
struct Level {
  std::string name;
  base::Fd folder;
  bool made = false;  // By us.
  std::optional<Attributes> attributes = {};
};

std::array<std::timespec, 2> times_of(const std::timespec& modified) {
  return {std::timespec{0, UTIME_OMIT}, modified};
}

class Unpacker {
 public:
  Unpacker(const Source& source, const base::Fd& into, const base::Fd& aside,
           const UnpackOptions& options, Report& report, const std::stop_token& stop)
      : options_(options),
        stop_(stop),
        report_(report),
        into_(into),
        aside_(aside),
        decompressor_(source),
        tar_([this] { return read(); }) {}

  Result<Unpacked> unpack() {
    for (;;) {
      if (stop_.stop_requested()) return cancelled();
      TRY(const auto entry, tar_.next());
      if (!entry) break;
      if (++report_.entries > options_.entries_max)
        return too_large("the archive holds more than ", std::to_string(options_.entries_max),
                         " entries");
      CHECK_OK(take(*entry));
    }
    CHECK_OK(go_to({}));
    CHECK_OK(read_to_the_end());
    unpacked_.trailer = decompressor_.trailer();
    return std::move(unpacked_);
  }

 private:
  Result<std::string_view> read() {
    if (stop_.stop_requested()) return cancelled();
    TRY(const std::string_view bytes, decompressor_.read());
    decompressed_ += bytes.size();
    // Beside its files: headers, and the padding at its end.
    if (decompressed_ > options_.bytes_max + options_.entries_max * kEntryBytes + kEndBytes)
      return too_large("the archive is too long");
    return bytes;
  }

  // Behind the last entry there is padding, and then what proves that nothing is missing.
  Result<base::Done> read_to_the_end() {
    for (;;) {
      TRY(const std::string_view bytes, read());
      if (bytes.empty()) return base::Done{};
    }
  }

  Result<base::Done> take(const Entry& entry) {
    TRY(Names names, names_of(entry.path));
    if (std::any_of(names.begin(), names.end(), options_.leaves_out)) return base::Done{};
    if (entry.kind == EntryKind::kOther) {
      report_.add(entry.path, Remark::kSpecial);
      return base::Done{};
    }
    if (entry.kind == EntryKind::kFolder) return take_folder(entry, names);
    if (names.empty()) return unfit("the archive holds a file without a name");
    const std::string name = std::move(names.back());
    names.pop_back();
    CHECK_OK(go_to(names));
    const base::Fd& folder = here();
    switch (entry.kind) {
      case EntryKind::kFile:
        return take_file(entry, folder, name);
      case EntryKind::kSymlink:
        return take_symlink(entry, names, folder, name);
      default:
        return take_hard_link(entry, folder, name);
    }
  }

  const base::Fd& here() const { return levels_.empty() ? into_ : levels_.back().folder; }

  // Leaves folders that are not on the way, and enters those that are, made where they are missing.
  Result<base::Done> go_to(const Names& names) {
    std::size_t shared = 0;
    while (shared < names.size() && shared < levels_.size() &&
           names[shared] == levels_[shared].name)
      ++shared;
    while (levels_.size() > shared) CHECK_OK(leave());
    while (levels_.size() < names.size()) CHECK_OK(enter(names[levels_.size()]));
    return base::Done{};
  }

  Result<base::Done> enter(const std::string& name) {
    Level level{.name = name};
    level.made = ::mkdirat(here().get(), name.c_str(), 0700) == 0;
    if (!level.made && errno != EEXIST) return Failure("make the folder", name, errno);
    level.folder = base::Fd(::openat(here().get(), name.c_str(), kFolder));
    if (!level.folder && (errno == ELOOP || errno == ENOTDIR))
      return Failure(Fault::kExists,
                     base::error(base::ErrorCode::kConflict, "something that is no folder is at ",
                                 name, ", where the archive has one"),
                     ENOTDIR);
    if (!level.folder) return Failure("open the folder", name, errno);
    levels_.push_back(std::move(level));
    return base::Done{};
  }

  Result<base::Done> leave() {
    const Level level = std::move(levels_.back());
    levels_.pop_back();
    if (!level.made && !(options_.fresh && level.attributes)) return base::Done{};
    const mode_t mode = level.attributes ? level.attributes->mode : 0777 & ~options_.umask;
    if (::fchmod(level.folder.get(), mode) != 0)
      return Failure("set the mode of", level.name, errno);
    if (level.attributes &&
        ::futimens(level.folder.get(), times_of(level.attributes->modified).data()) != 0)
      return Failure("set the time of", level.name, errno);
    return base::Done{};
  }

  Attributes attributes_of(const Entry& entry) const {
    return {entry.mode & (options_.set_ids ? 07777u : 0777u), entry.modified};
  }

  Result<base::Done> take_folder(const Entry& entry, const Names& names) {
    CHECK_OK(go_to(names));
    if (names.empty())
      unpacked_.top = attributes_of(entry);
    else
      levels_.back().attributes = attributes_of(entry);
    return base::Done{};
  }

  Result<base::Done> take_file(const Entry& entry, const base::Fd& folder,
                               const std::string& name) {
    if (entry.size > options_.bytes_max - report_.bytes)
      return too_large("the archive holds more than ", std::to_string(options_.bytes_max),
                       " bytes of files");
    report_.bytes += entry.size;
    ++report_.files;
    const base::Fd file(::openat(aside_.get(), kStaged,
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return Failure("write", entry.path, errno);
    auto written = write_content(entry, file);
    if (written) written = put_in_place(entry, folder, name);
    if (!written) ::unlinkat(aside_.get(), kStaged, 0);
    return written;
  }

  Result<base::Done> write_content(const Entry& entry, const base::Fd& file) {
    for (;;) {
      if (stop_.stop_requested()) return cancelled();
      TRY(const auto block, tar_.block());
      if (!block) break;
      if (block->offset > entry.size || block->bytes.size() > entry.size - block->offset)
        return unfit("the archive holds more of ", entry.path, " than its size");
      CHECK_OK(options_.take_room(block->bytes.size()));
      CHECK_OK(write_block(entry, file, *block));
    }
    const Attributes attributes = attributes_of(entry);
    if (::ftruncate(file.get(), static_cast<off_t>(entry.size)) != 0 ||
        ::fchmod(file.get(), attributes.mode) != 0 ||
        ::futimens(file.get(), times_of(attributes.modified).data()) != 0)
      return Failure("write", entry.path, errno);
    return base::Done{};
  }

  static Result<base::Done> write_block(const Entry& entry, const base::Fd& file,
                                        TarReader::Block block) {
    while (!block.bytes.empty()) {
      const ssize_t count = ::pwrite(file.get(), block.bytes.data(), block.bytes.size(),
                                     static_cast<off_t>(block.offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return Failure("write", entry.path, errno);
      block.bytes.remove_prefix(static_cast<std::size_t>(count));
      block.offset += static_cast<std::uint64_t>(count);
    }
    return base::Done{};
  }

  Result<base::Done> take_symlink(const Entry& entry, const Names& parents, const base::Fd& folder,
                                  const std::string& name) {
    if (entry.link.empty() || entry.link.size() >= PATH_MAX)
      return unfit("the archive holds a link that leads nowhere: ", entry.path);
    if (!options_.outward_links && leads_out(parents, entry.link)) {
      report_.add(entry.path, Remark::kLinkOutward);
      return base::Done{};
    }
    if (::symlinkat(entry.link.c_str(), aside_.get(), kStaged) != 0)
      return Failure("make the link", entry.path, errno);
    // Not every filesystem keeps a time for links.
    ::utimensat(aside_.get(), kStaged, times_of(entry.modified).data(), AT_SYMLINK_NOFOLLOW);
    auto placed = put_in_place(entry, folder, name);
    if (!placed) ::unlinkat(aside_.get(), kStaged, 0);
    return placed;
  }

  // To another entry, found through folders alone.
  Result<base::Done> take_hard_link(const Entry& entry, const base::Fd& folder,
                                    const std::string& name) {
    TRY(Names to, names_of(entry.link));
    if (to.empty()) return unfit("the archive holds a link that leads nowhere: ", entry.path);
    const std::string last = std::move(to.back());
    to.pop_back();
    base::Fd parent(::openat(into_.get(), ".", kFolder));
    for (const std::string& one : to)
      if (parent) parent = base::Fd(::openat(parent.get(), one.c_str(), kFolder));
    if (!parent || ::linkat(parent.get(), last.c_str(), aside_.get(), kStaged, 0) != 0) {
      if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
        return Failure("make the hard link", entry.path, errno);
      report_.add(entry.path, Remark::kLinkMissing);
      return base::Done{};
    }
    auto placed = put_in_place(entry, folder, name);
    // Two names of one file do not take each other's place: the staged one stays then.
    ::unlinkat(aside_.get(), kStaged, 0);
    return placed;
  }

  // With one call of the kernel, so that others see what was there before or all of this.
  Result<base::Done> put_in_place(const Entry& entry, const base::Fd& folder,
                                  const std::string& name) {
    const bool placed = options_.replace
                            ? ::renameat(aside_.get(), kStaged, folder.get(), name.c_str()) == 0
                            : ::linkat(aside_.get(), kStaged, folder.get(), name.c_str(), 0) == 0 &&
                                  ::unlinkat(aside_.get(), kStaged, 0) == 0;
    if (placed) return base::Done{};
    if (errno == EEXIST || errno == EISDIR || errno == ENOTEMPTY)
      return Failure(Fault::kExists,
                     base::error(base::ErrorCode::kConflict, entry.path, " exists already"), errno);
    return Failure("make", entry.path, errno);
  }

  const UnpackOptions& options_;
  const std::stop_token& stop_;
  Report& report_;
  const base::Fd& into_;
  const base::Fd& aside_;
  Decompressor decompressor_;
  TarReader tar_;
  std::uint64_t decompressed_ = 0;
  std::vector<Level> levels_;
  Unpacked unpacked_;
};

}  // namespace

Result<Unpacked> unpack(const Source& source, const base::Fd& into, const base::Fd& aside,
                        const UnpackOptions& options, Report& report, const std::stop_token& stop) {
  return Unpacker(source, into, aside, options, report, stop).unpack();
}

}  // namespace archives
