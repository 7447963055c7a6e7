#include "executor/filesystem/stagings.h"

#include <fcntl.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <set>

#include "executor/files/staging.h"
#include "executor/filesystem/names.h"
#include "executor/filesystem/removing.h"
#include "executor/filesystem/seam.h"
#include "executor/filesystem/staging.h"
#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

constexpr std::size_t kTagBytes = 4;
constexpr std::size_t kNameBytes = 8;
constexpr std::size_t kRecordBytesMax = 32u << 20;

// The folders that hold stagings: a line with the tag in their names, then the folders' paths, each
// with a NUL behind it.
struct Record {
  std::string tag;
  std::set<std::string> folders;
};

std::string to_text(const Record& record) {
  std::string text = record.tag + "\n";
  for (const std::string& folder : record.folders) text.append(folder).push_back('\0');
  return text;
}

// A path that was cut off was never used.
Record parse_record(std::string_view text) {
  Record record;
  const std::size_t line = text.find('\n');
  if (line != 2 * kTagBytes) return record;
  record.tag = text.substr(0, line);
  for (text.remove_prefix(line + 1); text.find('\0') != std::string_view::npos;
       text.remove_prefix(text.find('\0') + 1))
    record.folders.emplace(text.substr(0, text.find('\0')));
  return record;
}

base::Result<Record> read_record(const std::filesystem::path& path) {
  const auto text = base::read_file(path, kRecordBytesMax);
  if (!text && text.error().code != base::ErrorCode::kNotFound) return text.error();
  Record record = text ? parse_record(*text) : Record{};
  if (record.tag.empty()) record = {base::random_hex(kTagBytes), {}};
  return record;
}

std::string name_beginning(const std::string& tag) {
  return std::string(kPrivateStagingPrefix) + tag + "-";
}

// How many stagings went; an error when some may be left.
FsResult<std::size_t> sweep_folder(const std::string& path, const std::string& beginning) {
  const auto folder = open_without_links(path, O_RDONLY | O_DIRECTORY);
  if (!folder) return FsError(folder.error());
  std::vector<std::string> leftovers;
  const auto each = [&](const std::string& name) {
    if (name.starts_with(beginning)) leftovers.push_back(name);
    return true;
  };
  const auto listed = for_each_name(*folder, path, each);
  if (!listed) return FsError(listed.error());
  for (const std::string& name : leftovers)
    CHECK_OK(remove_some(*folder, name, below(path, name), kRemoveOurOwn, {}));
  return leftovers.size();
}

// Forgets the folders in which nothing is left, and those that are there no more.
std::size_t sweep(Record& record) {
  std::size_t swept = 0;
  std::erase_if(record.folders, [&](const std::string& folder) {
    const auto gone = sweep_folder(folder, name_beginning(record.tag));
    if (gone) swept += *gone;
    if (!gone && gone.error().fs != FsCode::kNotFound)
      base::log::warn("cannot remove what an earlier executor left half-written",
                      {{"error", gone.error()}});
    return gone || gone.error().fs == FsCode::kNotFound;
  });
  return swept;
}

mode_t umask_of_this_process() {
  const auto status = base::read_file("/proc/self/status");
  for (const std::string& line : base::split(status ? *status : "", '\n'))
    if (line.starts_with("Umask:"))
      return static_cast<mode_t>(std::strtoul(line.c_str() + 6, nullptr, 8));
  return 022;
}

}  // namespace

struct Stagings::State {
  std::mutex mutex;
  std::filesystem::path path;
  Record record;
  base::Fd file;                              // Of the record, to append.
  std::map<std::string, std::size_t> active;  // How many stand in each folder.
  std::size_t count = 0;
  std::uint64_t bytes = 0;

  base::Result<base::Done> rewrite() {
    CHECK_OK(base::write_file_atomically(path, to_text(record), 0600, base::Durable::kPastProcess));
    file = base::Fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!file) return base::errno_error("open", path, errno);
    return base::Done{};
  }

  base::Result<base::Done> put_on_record(const std::string& folder, std::size_t folders_max) {
    if (record.folders.contains(folder)) return base::Done{};
    if (record.folders.size() >= folders_max) {
      record.folders.clear();
      for (const auto& [busy, count] : active) record.folders.insert(busy);
      record.folders.insert(folder);
      return rewrite();
    }
    CHECK_OK(base::write_all(file.get(), folder + std::string(1, '\0')));
    record.folders.insert(folder);
    return base::Done{};
  }
};

Stagings::Stagings(Limits limits, mode_t umask)
    : limits_(limits), umask_(umask), state_(std::make_unique<State>()) {}
Stagings::~Stagings() = default;

base::Result<std::shared_ptr<Stagings>> Stagings::open(const std::filesystem::path& runtime_folder,
                                                       Limits limits) {
  std::shared_ptr<Stagings> stagings(new Stagings(limits, umask_of_this_process()));
  State& state = *stagings->state_;
  state.path = runtime_folder / "staged-folders";
  TRY(state.record, read_record(state.path));
  if (!left_out(Mechanism::kSweep)) stagings->swept_ = sweep(state.record);
  CHECK_OK(state.rewrite());
  return stagings;
}

FsResult<Staging> Stagings::begin(const Place& place) {
  TRY(Staging staging, admit());
  CHECK_OK(staging.make_folder(place));
  return staging;
}

FsResult<Staging> Stagings::begin_file(const Place& place) {
  TRY(Staging staging, admit());
  if (staging.open_without_name(place)) return staging;
  CHECK_OK(staging.make_folder(place));
  CHECK_OK(staging.make_file());
  return staging;
}

FsResult<Staging> Stagings::admit() {
  const std::lock_guard lock(state_->mutex);
  if (state_->count >= limits_.stagings)
    return fs_busy("there are already ", std::to_string(limits_.stagings),
                   " files being written; try again");
  ++state_->count;
  Staging staging;
  staging.all_ = shared_from_this();
  staging.name_ = name_beginning(state_->record.tag) + base::random_hex(kNameBytes);
  return staging;
}

FsResult<base::Done> Stagings::settle(Staging& staging, const Place& place) {
  base::Fd parent(::openat(place.folder.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent) return FsError("write in", place.folder_path, errno);
  const std::lock_guard lock(state_->mutex);
  if (const auto recorded = state_->put_on_record(place.folder_path, limits_.folders); !recorded)
    return FsError(recorded.error());
  ++state_->active[place.folder_path];
  staging.parent_ = std::move(parent);
  staging.parent_path_ = place.folder_path;
  staging.path_ = below(place.folder_path, staging.name_);
  return base::Done{};
}

std::size_t Stagings::count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->count;
}

std::uint64_t Stagings::bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->bytes;
}

bool Stagings::take_bytes(std::uint64_t bytes) {
  const std::lock_guard lock(state_->mutex);
  if (bytes > limits_.bytes - state_->bytes) return false;
  state_->bytes += bytes;
  return true;
}

void Stagings::ended(const Staging& staging) {
  const std::lock_guard lock(state_->mutex);
  --state_->count;
  state_->bytes -= staging.counted_;
  if (!staging.parent_) return;
  const auto busy = state_->active.find(staging.parent_path_);
  if (--busy->second == 0) state_->active.erase(busy);
}

}  // namespace executor
