#include "executor/files/staging.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

#include "executor/files/entry.h"
#include "executor/files/folders.h"
#include "libs/base/crypto.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNewPrefix = ".sandfleet-staged-new-";
constexpr std::string_view kReplacingPrefix = ".sandfleet-staged-replacing-";
constexpr int kLinksMax = 40;

FileResult<base::Done> write_fully(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return FileError("write", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return base::Done{};
}

// Where writing to `path` would end up: links are followed even to what is not there yet.
FileResult<std::string> follow_links(std::string path) {
  for (int i = 0; i < kLinksMax; ++i) {
    std::error_code failed;
    if (!fs::is_symlink(fs::symlink_status(path, failed))) return path;
    const fs::path link = fs::read_symlink(path, failed);
    if (failed) return FileError("follow", path, failed.value());
    path = (fs::path(path).parent_path() / link).lexically_normal().string();
  }
  return FileError("follow", path, ELOOP);
}

}  // namespace

std::string staged_name(bool replaces) {
  return std::string(replaces ? kReplacingPrefix : kNewPrefix) + base::random_hex(8);
}
bool is_staged_name(std::string_view name) {
  return name.starts_with(kNewPrefix) || name.starts_with(kReplacingPrefix) ||
         name.starts_with(kPrivateStagingPrefix);
}
bool staged_name_replaces(std::string_view name) { return name.starts_with(kReplacingPrefix); }

StagedFile::StagedFile(StagedFile&& other) noexcept
    : target_(std::move(other.target_)),
      replaces_(other.replaces_),
      mode_(other.mode_),
      owner_(std::move(other.owner_)),
      file_(std::move(other.file_)),
      name_(std::exchange(other.name_, {})) {}

StagedFile::~StagedFile() {
  if (!name_.empty()) ::unlink(name_.c_str());
}

FileResult<StagedFile> StagedFile::begin(const std::string& target, const Users& users,
                                         const User& owner) {
  StagedFile staged;
  TRY(staged.target_, follow_links(target));
  struct stat found{};
  if (::stat(staged.target_.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) return FileError("write", target, EISDIR);
    if (!S_ISREG(found.st_mode)) return FileError("replace", target, EINVAL);
    staged.replaces_ = true;
    staged.mode_ = found.st_mode & 07777;
  }
  const std::string parent = fs::path(staged.target_).parent_path().string();
  if (const auto made = make_parents(parent, users, owner); !made) return made.error();
  if (users.may_switch()) staged.owner_.emplace(owner.uid, owner.gid);
  if (const auto opened = staged.open_beside_target(); !opened) return opened.error();
  return staged;
}

FileResult<base::Done> StagedFile::open_beside_target() {
  const fs::path folder = fs::path(target_).parent_path();
  file_ = base::Fd(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  if (file_) return base::Done{};
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
    return FileError("write", target_, errno);
  const std::string name = (folder / staged_name(replaces_)).string();
  file_ = base::Fd(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file_) return FileError("write", target_, errno);
  name_ = name;
  return base::Done{};
}

FileResult<base::Done> StagedFile::write(std::string_view bytes) {
  return write_fully(file_.get(), bytes, target_);
}

FileResult<base::Done> StagedFile::append_file(const std::string& path) {
  base::Fd from(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!from) return FileError("read", path, errno);
  std::vector<char> buffer(256u << 10);
  for (;;) {
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("read", path, errno);
    if (got == 0) return base::Done{};
    const auto wrote = write({buffer.data(), static_cast<std::size_t>(got)});
    if (!wrote) return wrote.error();
  }
}

// The owner goes first: giving a file away drops its set-id bits.
bool StagedFile::hand_over() const {
  if (owner_ && ::fchown(file_.get(), owner_->first, owner_->second) != 0) return false;
  return !replaces_ || ::fchmod(file_.get(), mode_) == 0;
}

FileResult<std::string> StagedFile::give_it_a_name() {
  if (!name_.empty()) return name_;
  const std::string itself = "/proc/self/fd/" + std::to_string(file_.get());
  const fs::path folder = fs::path(target_).parent_path();
  const std::string name = (folder / staged_name(replaces_)).string();
  if (::linkat(AT_FDCWD, itself.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0)
    return FileError("name", target_, errno);
  name_ = name;
  return name_;
}

FileResult<base::Done> StagedFile::commit(const std::map<std::string, std::string>& metadata) {
  set_metadata(file_.get(), metadata);
  if (!hand_over()) return FileError("give away", target_, errno);
  TRY(const std::string name, give_it_a_name());
  if (::rename(name.c_str(), target_.c_str()) != 0) return FileError("replace", target_, errno);
  name_.clear();
  return base::Done{};
}

}  // namespace executor
