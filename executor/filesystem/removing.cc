#include "executor/filesystem/removing.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "executor/filesystem/names.h"
#include "executor/filesystem/seam.h"
#include "executor/filesystem/walk.h"

namespace executor {
namespace {

// How many names of one folder are known at a time.
constexpr std::size_t kNamesAtOnce = 1024;

class Removal {
 public:
  Removal(const RemoveHow& how, const std::stop_token& abort)
      : how_(how), left_(how.entries_max), abort_(abort) {}

  std::uint64_t removed() const { return removed_; }

  // True when it is gone.
  FsResult<bool> remove(const base::Fd& folder, const std::string& name, const std::string& path,
                        std::size_t depth) {
    if (left_ == 0) return false;
    if (abort_.stop_requested()) return aborted("remove", path);
    reached(Step::kRemoving, path);
    if (::unlinkat(folder.get(), name.c_str(), 0) == 0) return count();
    if (errno == ENOENT && depth > 1) return true;
    // Linux says EISDIR of a folder, POSIX and some filesystems EPERM.
    const int why = errno;
    if (why != EISDIR && why != EPERM) return FsError("remove", path, why);
    for (bool emptied = false;;) {
      if (::unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR) == 0) return count();
      if (errno == ENOTDIR) return FsError("remove", path, why);
      if (errno == ENOENT && depth > 1) return true;
      if ((errno != ENOTEMPTY && errno != EEXIST) || emptied || !how_.recursive)
        return FsError("remove", path, errno);
      if (depth > kRemoveDepthMax)
        return fs_error(FsCode::kIoError, path, " is deeper in the tree than can be removed");
      TRY(const std::size_t found, remove_within(folder, name, path, depth));
      if (left_ == 0) return false;
      emptied = found == 0;
    }
  }

 private:
  bool count() {
    --left_;
    ++removed_;
    return true;
  }

  // Some of what is in a folder; how many were found there.
  FsResult<std::size_t> remove_within(const base::Fd& folder, const std::string& name,
                                      const std::string& path, std::size_t depth) {
    const base::Fd place(
        ::openat(folder.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!place) return FsError("remove what is in", path, errno);
    // A descriptor of this kind takes no fchmod(2).
    if (how_.overrules_modes)
      ::chmod(("/proc/self/fd/" + std::to_string(place.get())).c_str(), 0700);
    const auto inner = reopen(place, path, O_RDONLY | O_DIRECTORY);
    if (!inner) return FsError(inner.error());
    std::vector<std::string> names;
    const auto each = [&names](const std::string& found) {
      names.push_back(found);
      return names.size() < kNamesAtOnce;
    };
    const auto listed = for_each_name(*inner, path, each);
    if (!listed) return FsError(listed.error());
    for (const std::string& found : names) {
      TRY(const bool gone, remove(*inner, found, below(path, found), depth + 1));
      if (!gone) break;
    }
    return names.size();
  }

  const RemoveHow& how_;
  std::uint64_t left_;
  std::uint64_t removed_ = 0;
  const std::stop_token& abort_;
};

}  // namespace

FsResult<Removed> remove_some(const base::Fd& folder, const std::string& name,
                              const std::string& path, const RemoveHow& how,
                              const std::stop_token& abort) {
  Removal removal(how, abort);
  const auto all = removal.remove(folder, name, path, 1);
  if (all) return Removed{removal.removed(), *all};
  FsError failed = all.error();
  if (removal.removed() > 0)
    failed.message += "; " + std::to_string(removal.removed()) + " entries in it are gone";
  return failed;
}

}  // namespace executor
