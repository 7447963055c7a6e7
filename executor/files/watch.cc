#include "executor/files/watch.h"

#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <cerrno>
#include <cstring>

#include "executor/files/staging.h"
#include "libs/base/folder.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t kMask = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                                IN_ATTRIB | IN_DELETE_SELF | IN_ONLYDIR;
constexpr std::size_t kStagedMax = 64;
constexpr long kNetworkMagics[] = {NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,  SMB2_SUPER_MAGIC,
                                   CIFS_SUPER_MAGIC, CEPH_SUPER_MAGIC, V9FS_MAGIC,
                                   FUSE_SUPER_MAGIC};

bool on_network(const std::string& path) {
  struct statfs about{};
  if (::statfs(path.c_str(), &about) != 0) return false;
  for (const long magic : kNetworkMagics)
    if (static_cast<std::uint32_t>(about.f_type) == static_cast<std::uint32_t>(magic)) return true;
  return false;
}

// A file without a name, such as one being staged, is told of as "#" and its inode's number.
bool is_nameless(const std::string& name, const std::string& path) {
  if (name.size() < 2 || name[0] != '#') return false;
  if (name.find_first_not_of("0123456789", 1) != std::string::npos) return false;
  struct stat found{};
  return ::lstat(path.c_str(), &found) != 0;
}

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : name.empty() ? folder : folder + "/" + name;
}

}  // namespace

Watch::Folders::Folders(std::string top, bool recursive, base::Fd inotify)
    : top_(std::move(top)),
      recursive_(recursive),
      inotify_(std::move(inotify)),
      descriptor_(inotify_.get()) {}

FileResult<Watch::Folders> Watch::Folders::find(const std::string& top, bool recursive,
                                                bool allow_network) {
  struct stat found{};
  if (::stat(top.c_str(), &found) != 0) return FileError("watch", top, errno);
  if (!S_ISDIR(found.st_mode)) return FileError("watch", top, ENOTDIR);
  if (!allow_network && on_network(top)) return FileError("watch", top, ENOTSUP);
  base::Fd inotify(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify) return FileError("watch", top, errno);
  Folders folders(top, recursive, std::move(inotify));
  CHECK_OK(folders.add(""));
  std::vector<std::string> met;
  if (recursive) folders.add_below("", met);
  return folders;
}

FileResult<base::Done> Watch::Folders::add(const std::string& relative) {
  const std::string path = join(top_, relative);
  if (relative_.size() >= kFoldersMax) return FileError("watch", path, ENOSPC);
  // The first folder may be reached through a link; below it links are not followed.
  const std::uint32_t mask = relative.empty() ? kMask : kMask | IN_DONT_FOLLOW;
  const int watched = ::inotify_add_watch(descriptor_, path.c_str(), mask);
  if (watched < 0) return FileError("watch", path, errno);
  relative_[watched] = relative;
  return base::Done{};
}

void Watch::Folders::add_below(const std::string& relative, std::vector<std::string>& met) {
  for (const fs::path& entry : base::entries_of(join(top_, relative))) {
    const std::string name = entry.filename().string();
    if (is_staged_name(name)) continue;
    const std::string below = join(relative, name);
    met.push_back(below);
    std::error_code unknown;
    if (!fs::is_directory(fs::symlink_status(entry, unknown))) continue;
    if (add(below)) {
      add_below(below, met);
    } else {
      ++lost_;
    }
  }
}

Watch::Watch(aio::Executor executor, Folders folders)
    : folders_(std::move(folders)),
      stream_(aio::Stream::over(executor, std::move(folders_.inotify_), base::Fd())),
      arrived_(executor) {}

aio::Task<> Watch::run(std::shared_ptr<Watch> watch) {
  alignas(inotify_event) char bytes[64 << 10];
  while (!watch->stopped_) {
    const auto got = co_await watch->stream_->read(bytes, sizeof bytes);
    if (!got || *got == 0) break;
    watch->read_batch(bytes, *got);
    watch->arrived_.notify_all();
  }
  watch->stop();
}

void Watch::stop() {
  stopped_ = true;
  stream_->close();
  arrived_.notify_all();
}

void Watch::read_batch(const char* bytes, std::size_t size) {
  for (std::size_t at = 0; at + sizeof(inotify_event) <= size;) {
    inotify_event event;
    std::memcpy(&event, bytes + at, sizeof event);
    const std::string name = event.len ? std::string(bytes + at + sizeof event) : "";
    handle(event.wd, event.mask, event.cookie, name);
    at += sizeof event + event.len;
  }
}

void Watch::handle(int watched, std::uint32_t mask, std::uint32_t cookie, const std::string& name) {
  if (mask & IN_Q_OVERFLOW) {
    ++lost_;
    return;
  }
  const auto folder = folders_.relative_.find(watched);
  if (folder == folders_.relative_.end()) return;
  if (mask & IN_IGNORED) {
    folders_.relative_.erase(folder);
    return;
  }
  // A folder's own events also come from its parent, under its name.
  if (name.empty()) return;
  const std::string path = join(folder->second, name);
  if (is_staged_name(name)) {
    if (staged_.size() >= kStagedMax) staged_.clear();
    // A private one is told of as the rename that it is.
    if (mask & IN_MOVED_FROM && !name.starts_with(kPrivateStagingPrefix)) staged_[cookie] = name;
    return;
  }
  if (mask & (IN_MODIFY | IN_ATTRIB) && is_nameless(name, join(folders_.top_, path))) return;
  if (mask & IN_MOVED_TO) {
    const auto staged = staged_.extract(cookie);
    const bool replaces = staged && staged_name_replaces(staged.mapped());
    if (!replaces) put(path, Change::kCreated);
    if (staged) {
      put(path, Change::kMode);
      put(path, Change::kWritten);
    }
  }
  if (mask & IN_CREATE) put(path, Change::kCreated);
  if (mask & IN_MODIFY) put(path, Change::kWritten);
  if (mask & IN_DELETE) put(path, Change::kRemoved);
  if (mask & IN_MOVED_FROM) put(path, Change::kRenamed);
  if (mask & IN_ATTRIB) put(path, Change::kMode);
  const bool new_folder = mask & IN_ISDIR && mask & (IN_CREATE | IN_MOVED_TO);
  if (new_folder && folders_.recursive_) add_new(path);
}

// What a new folder held before it was watched would be missed, so it is told here.
void Watch::add_new(const std::string& relative) {
  if (!folders_.add(relative)) return;
  std::vector<std::string> met;
  folders_.add_below(relative, met);
  for (const std::string& name : met) put(name, Change::kCreated);
}

void Watch::put(const std::string& name, Change change) {
  if (events_.size() >= kEventsMax) {
    ++lost_;
    return;
  }
  events_.push_back({name, change});
}

std::vector<WatchEvent> Watch::take() {
  std::vector<WatchEvent> taken(std::make_move_iterator(events_.begin()),
                                std::make_move_iterator(events_.end()));
  events_.clear();
  return taken;
}

aio::Task<> Watch::wait() {
  if (events_.empty() && lost_ == 0 && !stopped_) co_await arrived_.wait();
}

}  // namespace executor
