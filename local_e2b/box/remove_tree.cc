#include "local_e2b/box/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "libs/base/fd.h"
#include "libs/base/files.h"

namespace local_e2b {
namespace {

// Deeper folders are moved up to the top and removed from there.
constexpr int kDepthMax = 32;

class Remover {
 public:
  Remover(const std::filesystem::path& shown, int top) : shown_(shown), top_(top) {}

  base::Result<base::Done> empty(int folder, int depth);

 private:
  base::Result<base::Done> remove_entry(int folder, const char* name, int depth);
  base::Result<base::Done> lift(int folder, const char* name);
  base::Error failed(const char* what, const char* name) const {
    return base::errno_error(what, shown_ / "..." / name, errno);
  }

  const std::filesystem::path& shown_;
  const int top_;
  int lifted_ = 0;
};

// Whoever filled a folder may have shut it, and only the host's root can do without its bits.
base::Result<base::Done> let_us_in(int folder, const char* name) {
  struct stat found{};
  if (::fstat(folder, &found) != 0) return base::errno_error("look at", name, errno);
  if ((found.st_mode & S_IRWXU) == S_IRWXU) return base::Done{};
  // By this name it is the opened folder and none that took its place.
  const std::string opened = "/proc/self/fd/" + std::to_string(folder);
  if (::chmod(opened.c_str(), S_IRWXU) == 0) return base::Done{};
  return base::errno_error("open up", name, errno);
}

base::Result<base::Fd> open_folder(int parent, const char* name) {
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  base::Fd folder(static_cast<int>(::syscall(SYS_openat2, parent, name, &how, sizeof how)));
  if (!folder) return base::errno_error("enter", name, errno);
  CHECK_OK(let_us_in(folder.get(), name));
  return folder;
}

base::Result<base::Done> Remover::lift(int folder, const char* name) {
  CHECK_OK(open_folder(folder, name));  // What is shut cannot be moved to another parent either.
  for (;;) {
    const std::string free_name = ".deep-" + std::to_string(lifted_++);
    if (::renameat2(folder, name, top_, free_name.c_str(), RENAME_NOREPLACE) == 0)
      return base::Done{};
    if (errno != EEXIST) return failed("move up", name);
  }
}

base::Result<base::Done> Remover::remove_entry(int folder, const char* name, int depth) {
  if (::unlinkat(folder, name, 0) == 0 || errno == ENOENT) return base::Done{};
  if (errno != EISDIR && errno != EPERM) return failed("remove", name);
  if (::unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return base::Done{};
  if (errno != ENOTEMPTY && errno != EEXIST) return failed("remove", name);
  if (depth == kDepthMax) return lift(folder, name);
  TRY(const base::Fd inner, open_folder(folder, name));
  for (;;) {
    CHECK_OK(empty(inner.get(), depth + 1));
    if (::unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return base::Done{};
    if (errno != ENOTEMPTY && errno != EEXIST) return failed("remove", name);
  }
}

// Once through; entries that appear meanwhile are left for the next time.
base::Result<base::Done> Remover::empty(int folder, int depth) {
  DIR* entries = ::fdopendir(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!entries) return failed("list", ".");
  base::Result<base::Done> removed = base::Done{};
  while (const dirent* entry = removed ? ::readdir(entries) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") removed = remove_entry(folder, entry->d_name, depth);
  }
  ::closedir(entries);
  return removed;
}

}  // namespace

base::Result<base::Done> remove_tree(const std::filesystem::path& folder) {
  const base::Fd top(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!top && errno == ENOENT) return base::Done{};
  if (!top) return base::errno_error("remove", folder, errno);
  CHECK_OK(let_us_in(top.get(), folder.c_str()));
  Remover remover(folder, top.get());
  for (;;) {
    CHECK_OK(remover.empty(top.get(), 0));
    if (::rmdir(folder.c_str()) == 0 || errno == ENOENT) return base::Done{};
    // What was too deep has been moved up.
    if (errno != ENOTEMPTY && errno != EEXIST) return base::errno_error("remove", folder, errno);
  }
}

}  // namespace local_e2b
