#include "executor/filesystem/publish.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "executor/filesystem/seam.h"

namespace executor {
namespace {

// How often folders may appear under our hands.
constexpr int kTriesMax = 8;

// The folders that are missing, made within the private folder: the content goes into the
// innermost.
class Wrapping {
 public:
  Wrapping(const Staging& staging, const Place& place) : staging_(staging), place_(place) {}
  // Taken apart again, where it was not published.
  ~Wrapping() {
    if (published_ || made_.empty()) return;
    if (packed_) ::renameat(inner(), place_.name.c_str(), outside(), Staging::kContent);
    for (; made_.size() > 1; made_.pop_back()) {
      const std::string& name = place_.missing[made_.size() - 2];
      ::unlinkat(made_[made_.size() - 2].get(), name.c_str(), AT_REMOVEDIR);
    }
    ::unlinkat(outside(), kFolders, AT_REMOVEDIR);
  }
  Wrapping(const Wrapping&) = delete;
  Wrapping& operator=(const Wrapping&) = delete;

  FileResult<base::Done> make() {
    CHECK_OK(make_folder(kFolders, 0700));
    for (const std::string& name : place_.missing) CHECK_OK(make_folder(name, 0777));
    if (::renameat(outside(), Staging::kContent, inner(), place_.name.c_str()) != 0)
      return FileError("write", place_.name, errno);
    packed_ = true;
    return base::Done{};
  }

  FileResult<base::Done> publish() {
    const std::string& top = place_.missing.front();
    const auto moved = move_name(made_.front(), top, place_.folder, top, Replace::kNever);
    published_ = moved.ok();
    return moved;
  }

 private:
  static constexpr const char* kFolders = "folders";

  int outside() const { return staging_.folder().get(); }
  int inner() const { return made_.empty() ? outside() : made_.back().get(); }

  FileResult<base::Done> make_folder(const std::string& name, mode_t mode) {
    if (::mkdirat(inner(), name.c_str(), mode) != 0) return FileError("make folder", name, errno);
    base::Fd made(::openat(inner(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!made) return FileError("make folder", name, errno);
    made_.push_back(std::move(made));
    return base::Done{};
  }

  const Staging& staging_;
  const Place& place_;
  std::vector<base::Fd> made_;  // The one for them all, then each of them.
  bool packed_ = false;
  bool published_ = false;
};

FileResult<base::Done> publish_with_folders(const Staging& staging, const Place& place) {
  Wrapping wrapping(staging, place);
  CHECK_OK(wrapping.make());
  return wrapping.publish();
}

bool renames_without_replacing(const base::Fd& from, const std::string& name, const base::Fd& to,
                               const std::string& new_name) {
  return ::syscall(SYS_renameat2, from.get(), name.c_str(), to.get(), new_name.c_str(),
                   RENAME_NOREPLACE) == 0;
}

// Where the kernel or the filesystem has no such rename: a second name for a file, a move for a
// folder, which takes the place of an empty folder at most.
bool moves_by_link(const base::Fd& from, const std::string& name, const base::Fd& to,
                   const std::string& new_name) {
  struct stat found{};
  if (::fstatat(from.get(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (!S_ISDIR(found.st_mode))
    return ::linkat(from.get(), name.c_str(), to.get(), new_name.c_str(), 0) == 0 &&
           ::unlinkat(from.get(), name.c_str(), 0) == 0;
  struct stat there{};
  if (::fstatat(to.get(), new_name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return false;
  }
  return ::renameat(from.get(), name.c_str(), to.get(), new_name.c_str()) == 0;
}

FsError why_not_published(const FileError& failed, const std::string& key) {
  const int number = failed.error_number;
  if (number == EEXIST || number == ENOTEMPTY)
    return fs_error(FsCode::kNotObserved, key, " has come to be meanwhile");
  if (number == EISDIR) return fs_error(FsCode::kNotRegularFile, key, " is not a regular file");
  return FsError("write", key, number);
}

}  // namespace

FileResult<base::Done> move_name(const base::Fd& from, const std::string& name, const base::Fd& to,
                                 const std::string& new_name, Replace replace) {
  if (replace == Replace::kAllowed || left_out(Mechanism::kNoReplace)) {
    if (::renameat(from.get(), name.c_str(), to.get(), new_name.c_str()) == 0) return base::Done{};
    return FileError("move", new_name, errno);
  }
  if (renames_without_replacing(from, name, to, new_name)) return base::Done{};
  if ((errno == EINVAL || errno == ENOSYS) && moves_by_link(from, name, to, new_name))
    return base::Done{};
  return FileError("move", new_name, errno);
}

FsResult<std::size_t> publish(Staging& staging, const std::string& key, Replace replace) {
  for (int tries = 1;; ++tries) {
    const auto place = find_place(key);
    if (!place) return FsError(place.error());
    const std::size_t folders = place->missing.size();
    CHECK_OK(folders == 0 ? staging.name_content(*place) : staging.wrap_content(*place));
    reached(Step::kNamed, key);
    const auto published = folders == 0
                               ? move_name(staging.content_folder(), staging.content_name(),
                                           place->folder, place->name, replace)
                               : publish_with_folders(staging, *place);
    if (published) return folders;
    // Another made one of the folders: ours goes into that.
    if (folders > 0 && published.error().error_number == EEXIST && tries < kTriesMax) continue;
    return why_not_published(published.error(), key);
  }
}

FsResult<base::Done> sync_names(std::string key, std::size_t folders) {
  for (std::size_t i = 0; i <= folders; ++i) {
    key = parent_and_name(key).first;
    const auto folder = open_without_links(key, O_RDONLY | O_DIRECTORY);
    if (!folder) return FsError(folder.error());
    if (::fsync(folder->get()) != 0) return FsError("sync", key, errno);
  }
  return base::Done{};
}

}  // namespace executor
