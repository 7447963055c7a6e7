#include "executor/subprocess/spill.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/folder.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

base::Result<base::Done> write_on(base::Fd& file, const fs::path& path, const std::string& bytes) {
  if (!file) file = base::Fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return base::errno_error("make", path, errno);
  return base::write_all(file.get(), bytes);
}

// A disk may say only now that it has not taken all.
base::Result<base::Done> close_for_good(base::Fd& file, const fs::path& path) {
  if (file && ::close(file.release()) != 0) return base::errno_error("close", path, errno);
  return base::Done{};
}

}  // namespace

base::Result<std::shared_ptr<SpillFolder>> SpillFolder::open(aio::Executor executor,
                                                             const fs::path& path,
                                                             std::int64_t bytes_max,
                                                             aio::Background& background) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return base::errno_error("make the folder", path, errno);
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return base::errno_error("look at", path, errno);
  if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 0777) != 0700)
    return base::error(base::ErrorCode::kInvalid, "'", path.string(),
                       "' is not a folder of ours with mode 0700");
  for (const fs::path& left : base::entries_of(path)) {
    std::error_code failed;
    fs::remove_all(left, failed);
    if (failed)
      return base::error(base::ErrorCode::kInvalid, "cannot remove '", left.string(),
                         "': ", failed.message());
  }
  return std::shared_ptr<SpillFolder>(
      new SpillFolder(std::move(executor), path, bytes_max, background));
}

std::shared_ptr<Spill> SpillFolder::begin(std::int64_t bytes_max) {
  return std::shared_ptr<Spill>(
      new Spill(shared_from_this(), path_ / base::random_hex(16), bytes_max));
}

namespace {
aio::Task<> withhold(std::shared_ptr<Spill> spill) { co_await spill->withhold(); }
}  // namespace

void SpillFolder::discard(std::shared_ptr<Spill> spill) { tasks_.spawn(executor::withhold(spill)); }

aio::Task<bool> SpillFolder::make_room(std::int64_t bytes) {
  while (bytes_ + bytes > bytes_max_) {
    if (whole_.empty()) co_return false;
    const auto oldest = whole_.front().lock();
    whole_.pop_front();
    if (oldest) co_await oldest->withhold();
  }
  bytes_ += bytes;
  co_return true;
}

Spill::~Spill() {
  folder_->bytes_ -= bytes_;
  if (!removed_) ::unlink(path_.c_str());
}

aio::Task<> Spill::add(std::string bytes) {
  const auto self = shared_from_this();
  if (state_ != State::kWriting) co_return;
  const auto count = static_cast<std::int64_t>(bytes.size());
  const bool fits = count <= bytes_max_ - bytes_ && co_await folder_->make_room(count);
  if (!fits) {
    co_await withhold();
    co_return;
  }
  bytes_ += count;
  const auto written =
      co_await folder_->background_.run([file = file_, path = path_, bytes = std::move(bytes)] {
        return write_on(*file, path, bytes);
      });
  if (state_ == State::kWithheld) {
    co_await remove_file();  // It was made after it had been removed.
  } else if (!written) {
    co_await withhold();
  }
}

aio::Task<> Spill::finish() {
  const auto self = shared_from_this();
  if (state_ != State::kWriting) co_return;
  const auto closed = co_await folder_->background_.run(
      [file = file_, path = path_] { return close_for_good(*file, path); });
  if (state_ != State::kWriting) co_return;
  if (!closed) {
    co_await withhold();
    co_return;
  }
  state_ = State::kWhole;
  folder_->whole_.push_back(weak_from_this());
}

aio::Task<> Spill::withhold() {
  const auto self = shared_from_this();
  if (state_ == State::kWithheld) co_return;
  state_ = State::kWithheld;
  co_await remove_file();
}

// Freeing a large file takes its time: that of the last to close it, who may still be writing.
aio::Task<> Spill::remove_file() {
  const auto removed =
      co_await folder_->background_.run([file = std::exchange(file_, std::make_shared<base::Fd>()),
                                         path = path_]() mutable -> base::Result<base::Done> {
        ::unlink(path.c_str());
        file.reset();
        return base::Done{};
      });
  if (!removed) ::unlink(path_.c_str());
  removed_ = true;
  folder_->bytes_ -= bytes_;
  bytes_ = 0;
}

std::optional<std::string> Spill::path() const {
  if (state_ != State::kWhole) return std::nullopt;
  return path_.string();
}

}  // namespace executor
