#include "local_e2b/box/planter.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "libs/base/fd.h"
#include "libs/base/files.h"
#include "libs/base/folder.h"

namespace local_e2b {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kCopyBytesMax = 4u << 20;  // Of one file.
constexpr int kCopyDepthMax = 8;

}  // namespace

base::Result<base::Done> Planter::folder(const fs::path& at, mode_t mode, std::uint32_t owner) {
  note('d', at, mode, "");
  if (top_.empty()) return base::Done{};
  const fs::path target = top_ / at;
  if (::mkdir(target.c_str(), mode) != 0 && errno != EEXIST)
    return base::errno_error("make folder", target, errno);
  if (::chmod(target.c_str(), mode) != 0) return base::errno_error("set mode of", target, errno);
  return own(target, owner);
}

base::Result<base::Done> Planter::folders(const fs::path& at) {
  fs::path walked;
  for (const fs::path& part : at) {
    walked /= part;
    if (!fs::exists(top_ / walked)) CHECK_OK(folder(walked, 0755));
  }
  return base::Done{};
}

base::Result<base::Done> Planter::file(const fs::path& at, std::string_view text, mode_t mode,
                                       std::uint32_t owner) {
  note('f', at, mode, text);
  if (top_.empty()) return base::Done{};
  const fs::path target = top_ / at;
  const base::Fd opened(
      ::open(target.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!opened || ::fchmod(opened.get(), mode) != 0)
    return base::errno_error("write", target, errno);
  CHECK_OK(base::write_all(opened.get(), text));
  return own(target, owner);
}

base::Result<base::Done> Planter::link(const fs::path& to, const fs::path& at) {
  note('l', at, 0, to.native());
  if (top_.empty()) return base::Done{};
  const fs::path target = top_ / at;
  if (::symlink(to.c_str(), target.c_str()) != 0 && errno != EEXIST)
    return base::errno_error("make link", target, errno);
  return own(target, kRootInside);
}

base::Result<base::Done> Planter::copy(const fs::path& from, const fs::path& at,
                                       std::uint32_t owner, int depth) {
  struct stat found{};
  if (::lstat(from.c_str(), &found) != 0) return base::Done{};  // Gone since it was listed.
  std::error_code failed;
  if (S_ISLNK(found.st_mode)) {
    const fs::path to = fs::read_symlink(from, failed);
    if (failed) return base::Done{};
    return link(to, at);
  }
  if (!(found.st_mode & S_IROTH)) return base::Done{};
  if (S_ISREG(found.st_mode)) {
    TRY(const std::string text, base::read_file(from, kCopyBytesMax));
    return file(at, text, found.st_mode & 0755, owner);
  }
  if (!S_ISDIR(found.st_mode) || depth == kCopyDepthMax) return base::Done{};
  // Writable to its owner, who fills it and need not be the host's root.
  CHECK_OK(folder(at, (found.st_mode & 0755) | S_IRWXU, owner));
  auto entries = base::entries_of(from);
  std::sort(entries.begin(), entries.end());  // The digest depends on the order.
  for (const fs::path& entry : entries)
    CHECK_OK(copy(entry, at / entry.filename(), owner, depth + 1));
  return base::Done{};
}

base::Result<base::Done> Planter::own(const fs::path& target, std::uint32_t owner) {
  if (::lchown(target.c_str(), ids_.uid_of(owner), ids_.gid_of(owner)) == 0) return base::Done{};
  return base::errno_error("give away", target, errno);
}

void Planter::note(char kind, const fs::path& at, mode_t mode, std::string_view content) {
  digest_.add(std::string(1, kind) + at.string() + '\0' + std::to_string(mode) + '\0' +
              std::to_string(content.size()) + '\0');
  digest_.add(content);
}

}  // namespace local_e2b
