#include "executor/filesystem/copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <optional>
#include <vector>

#include "executor/files/path.h"
#include "executor/filesystem/names.h"
#include "executor/filesystem/permit.h"
#include "executor/filesystem/publish.h"
#include "executor/filesystem/seam.h"
#include "executor/filesystem/version.h"
#include "libs/base/files.h"
#include "libs/base/log.h"

namespace executor {
namespace {

constexpr std::size_t kRangeBytes = 8u << 20;  // Between two looks whether to stop.
constexpr std::size_t kBufferBytes = 256u << 10;
constexpr std::size_t kNamesAtOnce = 16'384;

struct Found {
  base::Fd place;  // O_PATH.
  EntryKind kind = EntryKind::kOther;
  mode_t mode = 0;
};

// Nothing when it is not there.
FsResult<std::optional<Found>> find_entry(const base::Fd& folder, const std::string& name,
                                          const std::string& path) {
  Found entry;
  entry.place = base::Fd(::openat(folder.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!entry.place && errno == ENOENT) return std::optional<Found>();
  struct stat found{};
  if (!entry.place || ::fstat(entry.place.get(), &found) != 0)
    return FsError("look at", path, errno);
  entry.kind = kind_of(found.st_mode);
  entry.mode = found.st_mode & 0777;
  return std::optional<Found>(std::move(entry));
}

class Copy {
 public:
  Copy(Staging& staging, const std::string& from, std::uint64_t entries_max,
       const std::stop_token& abort)
      : staging_(staging), from_(from), entries_max_(entries_max), abort_(abort) {}

  const Copied& copied() const { return copied_; }

  FsResult<base::Done> copy(const Found& source, const std::string& path, const base::Fd& to,
                            const std::string& name, std::size_t depth) {
    if (abort_.stop_requested()) return aborted("copy", from_);
    if (++entries_ > entries_max_)
      return fs_error(FsCode::kTooLarge, from_, " holds more than ", std::to_string(entries_max_),
                      " entries");
    switch (source.kind) {
      case EntryKind::kFile:
        return copy_file(source, path, to, name);
      case EntryKind::kFolder:
        return copy_folder(source, path, to, name, depth);
      case EntryKind::kSymlink:
        return copy_link(source, path, to, name);
      case EntryKind::kOther:
        break;
    }
    return fs_error(FsCode::kNotRegularFile, path, " is no file, folder or link");
  }

 private:
  FsResult<base::Done> copy_file(const Found& source, const std::string& path, const base::Fd& to,
                                 const std::string& name) {
    const auto file = reopen(source.place, path, O_RDONLY);
    if (!file) return FsError(file.error());
    const base::Fd copy(::openat(to.get(), name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!copy) return FsError("write a copy of", path, errno);
    for (;;) {
      if (abort_.stop_requested()) return aborted("copy", from_);
      TRY(const std::size_t moved, copy_some(*file, copy, path));
      if (moved == 0) break;
      CHECK_OK(staging_.count(moved));
      copied_.bytes += moved;
    }
    ++copied_.files;
    if (::fchmod(copy.get(), source.mode) != 0) return FsError("write a copy of", path, errno);
    return base::Done{};
  }

  // From where both stand; 0 at the end.
  FsResult<std::size_t> copy_some(const base::Fd& from, const base::Fd& to,
                                  const std::string& path) {
    const ssize_t moved = ::copy_file_range(from.get(), nullptr, to.get(), nullptr, kRangeBytes, 0);
    if (moved > 0) return static_cast<std::size_t>(moved);
    // Between some filesystems it cannot, and of files that are made up as they are read it sees
    // nothing.
    buffer_.resize(kBufferBytes);
    const ssize_t got = ::read(from.get(), buffer_.data(), buffer_.size());
    if (got < 0) return FsError("read", path, errno);
    const auto wrote = base::write_all(to.get(), {buffer_.data(), static_cast<std::size_t>(got)});
    if (!wrote) return FsError(wrote.error());
    return static_cast<std::size_t>(got);
  }

  FsResult<base::Done> copy_folder(const Found& source, const std::string& path, const base::Fd& to,
                                   const std::string& name, std::size_t depth) {
    if (depth > kCopyDepthMax)
      return fs_error(FsCode::kTooLarge, path, " is deeper in the tree than can be copied");
    if (::mkdirat(to.get(), name.c_str(), 0700) != 0)
      return FsError("write a copy of", path, errno);
    const auto inner = reopen(source.place, path, O_RDONLY | O_DIRECTORY);
    if (!inner) return FsError(inner.error());
    const base::Fd copy(
        ::openat(to.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!copy) return FsError("write a copy of", path, errno);
    CHECK_OK(copy_entries(*inner, path, copy, depth));
    // The outermost is yet to move, which takes the right to change it.
    const mode_t mode = depth == 1 ? source.mode | S_IWUSR : source.mode;
    if (::fchmod(copy.get(), mode) != 0) return FsError("write a copy of", path, errno);
    return base::Done{};
  }

  FsResult<base::Done> copy_entries(const base::Fd& folder, const std::string& path,
                                    const base::Fd& to, std::size_t depth) {
    std::string last;
    for (;;) {
      const auto names = first_names(folder, path, {last, false}, kNamesAtOnce);
      if (!names) return FsError(names.error());
      if (names->empty()) return base::Done{};
      for (const std::string& name : *names) {
        const std::string entry_path = below(path, name);
        TRY(const auto entry, find_entry(folder, name, entry_path));
        if (entry) CHECK_OK(copy(*entry, entry_path, to, name, depth + 1));
      }
      last = names->back();
    }
  }

  FsResult<base::Done> copy_link(const Found& source, const std::string& path, const base::Fd& to,
                                 const std::string& name) {
    std::string target(PATH_MAX, '\0');
    const ssize_t size = ::readlinkat(source.place.get(), "", target.data(), target.size());
    if (size < 0) return FsError("read", path, errno);
    target.resize(static_cast<std::size_t>(size));
    if (::symlinkat(target.c_str(), to.get(), name.c_str()) != 0)
      return FsError("write a copy of", path, errno);
    return base::Done{};
  }

  Staging& staging_;
  const std::string& from_;
  const std::uint64_t entries_max_;
  const std::stop_token& abort_;
  std::uint64_t entries_ = 0;
  std::vector<char> buffer_;  // Not on the stack, where each level of a deep tree would have one.
  Copied copied_;
};

FsResult<std::optional<Found>> find_at(const Place& place, const std::string& path) {
  if (!place.missing.empty()) return FsError("find the folder of", path, ENOENT);
  return find_entry(place.folder, place.name, path);
}

std::optional<FsError> objection_to_copy(const Found& source, const std::optional<Found>& there,
                                         const std::string& from, const std::string& to,
                                         const CopyRequest& request) {
  const bool folder = source.kind == EntryKind::kFolder;
  if (folder && !request.recursive) return fs_error(FsCode::kNotRegularFile, from, " is a folder");
  if (folder && is_within(to, from))
    return FsError(base::error(base::ErrorCode::kInvalid, from, " cannot be copied into itself"));
  if (!there) return std::nullopt;
  if (!request.replace || folder || there->kind == EntryKind::kFolder)
    return fs_error(FsCode::kNotObserved, to, " exists already");
  return std::nullopt;
}

FsResult<base::Done> make_content_durable(const Staging& staging) {
  if (::syncfs(staging.folder().get()) != 0) return FsError("sync", staging.path(), errno);
  return base::Done{};
}

// It is there already, so nothing from here on is a failure.
FsResult<base::Done> finish_copy(const Found& source, const std::string& to, bool durable) {
  if (source.kind == EntryKind::kFolder && !(source.mode & S_IWUSR)) {
    const auto folder = open_without_links(to, O_RDONLY | O_DIRECTORY);
    if (!folder) return FsError(folder.error());
    if (::fchmod(folder->get(), source.mode) != 0) return FsError("set the mode of", to, errno);
  }
  return durable ? sync_names(to, 0) : base::Done{};
}

}  // namespace

FsResult<Copied> copy_to(Stagings& stagings, const std::string& from, const std::string& to,
                         const CopyRequest& request, const std::stop_token& abort) {
  CHECK_OK(permit(request.permission, to));
  const auto source_place = find_place(from);
  if (!source_place) return FsError(source_place.error());
  TRY(std::optional<Found> source, find_at(*source_place, from));
  if (!source) return FsError("copy", from, ENOENT);
  const auto place = find_place(to);
  if (!place) return FsError(place.error());
  TRY(const std::optional<Found> there, find_at(*place, to));
  if (auto objection = objection_to_copy(*source, there, from, to, request)) return *objection;
  if (there && there->kind == EntryKind::kFile) source->mode = there->mode;

  TRY(Staging staging, stagings.begin(*place));
  Copy copy(staging, from, request.entries_max, abort);
  CHECK_OK(copy.copy(*source, from, staging.folder(), Staging::kContent, 1));
  if (request.durable) CHECK_OK(make_content_durable(staging));
  reached(Step::kPublishing, to);
  if (abort.stop_requested()) return aborted("copy", from);
  const bool replaces = request.replace && source->kind != EntryKind::kFolder;
  CHECK_OK(publish(staging, to, replaces ? Replace::kAllowed : Replace::kNever));
  if (const auto finished = finish_copy(*source, to, request.durable); !finished)
    base::log::warn("a copy was made, but not all about it is as asked",
                    {{"error", finished.error()}});
  return copy.copied();
}

}  // namespace executor
