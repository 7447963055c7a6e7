#include "libs/manifests/journal.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::size_t kSumDigits = 16;
constexpr std::size_t kReadBytesMax = 1u << 30;
// Of what is free, so that the journal alone never fills the disk that the records' files need.
constexpr std::uint64_t kShareOfDisk = 8;
constexpr std::uint64_t kFileBytesMin = 16 << 10;
constexpr std::int64_t kNumberMax = 1'000'000'000'000'000;  // A file a second, for ever.

std::string sum_of(std::string_view line) {
  return base::to_hex(base::sha256(line).substr(0, kSumDigits / 2));
}

std::string whole(std::string_view line) {
  std::string text = sum_of(line);
  text.reserve(text.size() + line.size() + 2);
  return text.append(" ").append(line).append("\n");
}

// The lines up to the first that is not whole, and how many bytes those are.
std::pair<std::vector<std::string>, std::size_t> lines_of(std::string_view content) {
  std::vector<std::string> lines;
  std::size_t at = 0;
  for (;;) {
    const std::size_t end = content.find('\n', at);
    if (end == std::string_view::npos) return {std::move(lines), at};
    const std::string_view line = content.substr(at, end - at);
    const bool sound = line.size() > kSumDigits && line[kSumDigits] == ' ' &&
                       line.substr(0, kSumDigits) == sum_of(line.substr(kSumDigits + 1));
    if (!sound) return {std::move(lines), at};
    lines.emplace_back(line.substr(kSumDigits + 1));
    at = end + 1;
  }
}

fs::path name_of(std::uint64_t number) { return std::to_string(number) + ".log"; }

// The files of a folder by their number. Whatever has another name than we give is not ours, and
// one with a number that we never reach would leave none for the next.
Result<std::map<std::uint64_t, fs::path>> numbered(const fs::path& folder) {
  std::map<std::uint64_t, fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto number = base::parse_integer(entry->path().stem().string());
    const bool ours = number && *number > 0 && *number < kNumberMax &&
                      entry->path().filename() == name_of(static_cast<std::uint64_t>(*number));
    if (ours)
      files[static_cast<std::uint64_t>(*number)] = entry->path();
    else
      base::log::warn("a file in the journal's folder is none of the journal's; it is left alone",
                      {{"file", entry->path().string()}});
  }
  if (error)
    return base::error(ErrorCode::kUnavailable, "cannot list ", folder.string(), ": ",
                       error.message());
  return files;
}

}  // namespace

Result<std::vector<std::string>> Journal::read() {
  std::lock_guard lock(mutex_);
  std::vector<std::string> lines;
  std::error_code error;
  if (!fs::exists(folder_, error)) return lines;
  TRY(const auto files, numbered(folder_));
  for (const auto& [number, path] : files) {
    // What a killed process left in memory only is about to be relied upon.
    CHECK_OK(disk_.sync(path));
    TRY(const std::string content, base::read_file(path, kReadBytesMax));
    auto [found, bytes] = lines_of(content);
    if (bytes < content.size())
      base::log::warn("a journal ends in what a crash cut short; that is passed over",
                      {{"file", path.string()}, {"bytes", content.size() - bytes}});
    lines.insert(lines.end(), std::make_move_iterator(found.begin()),
                 std::make_move_iterator(found.end()));
    files_.push_back({path});
    next_number_ = number + 1;
  }
  return lines;
}

Result<Done> Journal::begin_file() {
  newest_.reset();
  if (files_.size() >= options_.files_max)
    return base::error(ErrorCode::kUnavailable, "the journal in ", folder_.string(), " has ",
                       std::to_string(files_.size()),
                       " files, and what they tell could not be written to the records yet");
  if (std::cmp_greater_equal(next_number_, kNumberMax))
    return base::error(ErrorCode::kUnavailable, "the journal in ", folder_.string(),
                       " has no number left; stop the controller cleanly, and it begins anew");
  std::error_code error;
  CHECK_OK(disk_.make_folders(folder_));
  const fs::path path = folder_ / name_of(next_number_);
  auto made = std::make_shared<File>();
  TRY(made->fd, disk_.create(path, 0600));
  made->path = path;
  const auto space = fs::space(folder_, error);
  const std::uint64_t share = error ? options_.file_bytes_max : space.available / kShareOfDisk;
  made->bytes_max = std::min(options_.file_bytes_max, std::max(share, kFileBytesMin));
  ++next_number_;
  newest_ = std::move(made);
  files_.push_back({path, newest_});
  return Done{};
}

Result<Journal::Mark> Journal::append(std::string_view line) {
  const std::string text = whole(line);
  std::lock_guard lock(mutex_);
  const auto has_room = [&] {
    return newest_->written == 0 || newest_->written + text.size() <= newest_->bytes_max;
  };
  if (!newest_ || newest_->damaged || !has_room()) CHECK_OK(begin_file());
  if (auto wrote = disk_.append(newest_->fd, newest_->path, text); !wrote) {
    if (::ftruncate(newest_->fd.get(), static_cast<off_t>(newest_->written.load())) != 0)
      newest_->damaged = true;
    return wrote.error();
  }
  newest_->written += text.size();
  Mark mark;
  mark.file_ = newest_;
  mark.end_ = newest_->written;
  return mark;
}

Result<Done> Journal::sync(const Mark& mark) {
  if (!mark.file_) return Done{};
  File& file = *mark.file_;
  std::lock_guard turn(file.syncing);
  if (file.synced >= mark.end_) return Done{};
  if (file.damaged)
    return base::error(ErrorCode::kUnavailable, "cannot sync ", file.path.string(),
                       ": an earlier sync of it failed");
  const std::uint64_t written = file.written;
  if (auto synced = disk_.sync(file.fd, file.path); !synced) {
    file.damaged = true;
    return synced;
  }
  file.synced = written;
  return Done{};
}

std::size_t Journal::settled() {
  std::lock_guard lock(mutex_);
  std::size_t count = 0;
  while (count < files_.size() && files_[count].file.expired()) ++count;
  return count;
}

// Not the younger before the elder: it may tell that what the elder tells of is gone.
Result<Done> Journal::drop(std::size_t files) {
  for (; files > 0; --files) {
    const fs::path eldest = [&] {
      std::lock_guard lock(mutex_);
      return files_.front().path;
    }();
    CHECK_OK(disk_.remove(eldest));
    std::lock_guard lock(mutex_);
    files_.pop_front();
  }
  return Done{};
}

void Journal::end_newest() {
  std::lock_guard lock(mutex_);
  newest_.reset();
}

}  // namespace manifests
