#include "executor/admin/marker.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "executor/admin/regular_file.h"
#include "libs/base/crypto.h"
#include "libs/base/files.h"

namespace executor {

using base::Done;
using base::ErrorCode;
using base::Result;

namespace {

constexpr int kSlots = 2;
constexpr std::size_t kDigestCharacters = 64;

off_t place_of(std::int64_t sequence) {
  return static_cast<off_t>(static_cast<std::size_t>(sequence % kSlots) * Marker::kSlotBytes);
}

Result<Done> write_at(int fd, std::string_view bytes, off_t at, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(fd, bytes.data(), bytes.size(), at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return base::errno_error("write", path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    at += wrote;
  }
  return Done{};
}

Result<std::string> slot_at(int fd, off_t at, const std::filesystem::path& path) {
  std::string slot(Marker::kSlotBytes, '\0');
  std::size_t held = 0;
  while (held < slot.size()) {
    const ssize_t got =
        ::pread(fd, slot.data() + held, slot.size() - held, at + static_cast<off_t>(held));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return base::errno_error("read", path, errno);
    if (got == 0) break;  // Somebody has cut it off: what is missing was never written.
    held += static_cast<std::size_t>(got);
  }
  return slot;
}

}  // namespace

struct Marker::File {
  base::Fd fd;
  std::atomic<bool> settled = false;
};

Result<std::string> to_slot(const MarkerRecord& record) {
  const base::Json json = {{"sequence", record.sequence},
                           {"identity", wire::to_json(record.identity)}};
  const std::string text = base::to_text(json);
  std::string slot = base::to_hex(base::sha256(text)) + " " + text + "\n";
  if (slot.size() > Marker::kSlotBytes)
    return base::error(ErrorCode::kInvalid, "the identity is too long for the marker");
  slot.resize(Marker::kSlotBytes);
  return slot;
}

Result<std::optional<MarkerRecord>> record_in(std::string_view slot) {
  if (std::ranges::all_of(slot, [](char each) { return each == '\0'; }))
    return std::optional<MarkerRecord>();
  const std::string_view line = slot.substr(0, slot.find('\n'));
  const std::string_view text = line.substr(std::min(line.size(), kDigestCharacters + 1));
  if (line.size() == slot.size() ||
      line.substr(0, kDigestCharacters) != base::to_hex(base::sha256(text)))
    return base::error(ErrorCode::kInvalid, "a slot of the marker is damaged");
  TRY(const auto json, base::parse_json(text));
  const base::Json* identity = base::object_at(json, "identity");
  const auto sequence = base::integer_at(json, "sequence");
  if (!identity || !sequence || *sequence < 1)
    return base::error(ErrorCode::kInvalid, "a slot of the marker lacks a part");
  MarkerRecord record{.sequence = *sequence};
  TRY(record.identity, wire::identity_from_json(*identity));
  return std::optional(std::move(record));
}

Result<Marker> Marker::open(const std::filesystem::path& path, Disk disk) {
  TRY(RegularFile opened, open_regular_file("open the marker", path, O_RDWR));
  const auto file = std::make_shared<File>();
  file->fd = std::move(opened.fd);
  constexpr off_t kBytes = kSlots * kSlotBytes;
  // Written, so that its blocks are there: later writes then change nothing but what they hold.
  if (opened.bytes < kBytes) {
    const std::string nothing(static_cast<std::size_t>(kBytes - opened.bytes), '\0');
    CHECK_OK(write_at(file->fd.get(), nothing, opened.bytes, path));
  }
  return Marker(path, std::move(disk), file);
}

Result<std::optional<wire::Identity>> Marker::read() const {
  std::optional<MarkerRecord> newest;
  std::optional<base::Error> damaged;
  for (int number = 0; number < kSlots; ++number) {
    TRY(const std::string slot, slot_at(file_->fd.get(), place_of(number), path_));
    auto record = record_in(slot);
    if (!record) {
      damaged = record.error();
    } else if (*record && (!newest || (*record)->sequence > newest->sequence)) {
      newest = **record;
    }
  }
  if (newest) return std::optional(newest->identity);
  if (damaged) return *damaged;
  return std::optional<wire::Identity>();
}

bool Marker::has_its_name() const {
  struct stat named{}, held{};
  return ::lstat(path_.c_str(), &named) == 0 && ::fstat(file_->fd.get(), &held) == 0 &&
         named.st_dev == held.st_dev && named.st_ino == held.st_ino;
}

Result<Done> Marker::write(const wire::Identity& identity) {
  if (!has_its_name()) {
    TRY(Marker anew, open(path_, disk_));
    *this = std::move(anew);
  }
  std::int64_t newest = 0;
  for (int number = 0; number < kSlots; ++number) {
    TRY(const std::string slot, slot_at(file_->fd.get(), place_of(number), path_));
    if (const auto record = record_in(slot); record && *record)
      newest = std::max(newest, (*record)->sequence);
  }
  TRY(const std::string slot, to_slot({.sequence = newest + 1, .identity = identity}));
  CHECK_OK(write_at(file_->fd.get(), slot, place_of(newest + 1), path_));
  if (!file_->settled) return settle();
  if (disk_.sync_data(file_->fd.get()) != 0) return base::errno_error("sync", path_, errno);
  return Done{};
}

Result<Done> Marker::settle() const {
  const auto file = file_;
  if (disk_.sync(file->fd.get()) != 0) return base::errno_error("sync", path_, errno);
  const base::Fd folder(::open(path_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || disk_.sync(folder.get()) != 0)
    return base::errno_error("sync", path_.parent_path(), errno);
  file->settled = true;
  return Done{};
}

}  // namespace executor
