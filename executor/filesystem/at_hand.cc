#include "executor/filesystem/at_hand.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <utility>

#include "executor/filesystem/walk.h"

namespace executor {
namespace {

// Whose answers come from memory or a disk, never from another machine or program (statfs(2)).
constexpr std::array<std::uint64_t, 4> kOfThisMachine = {EXT4_SUPER_MAGIC, 0x58465342 /* XFS */,
                                                         BTRFS_SUPER_MAGIC, TMPFS_MAGIC};

bool is_of_this_machine(const base::Fd& folder) {
  struct statfs found{};
  if (::fstatfs(folder.get(), &found) != 0) return false;
  return std::ranges::find(kOfThisMachine, static_cast<std::uint64_t>(found.f_type)) !=
         kOfThisMachine.end();
}

// Where an open file is; the kernel knows that of every one, and asks nobody for a mask of nothing.
std::optional<std::uint64_t> device_of(const base::Fd& place) {
  struct statx found{};
  if (::statx(place.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &found) != 0)
    return std::nullopt;
  return std::uint64_t{found.stx_dev_major} << 32 | found.stx_dev_minor;
}

}  // namespace

AtHand::AtHand(const std::string& folder) {
  base::Fd opened(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened || !is_of_this_machine(opened)) return;
  const auto device = device_of(opened);
  if (!device) return;
  device_ = *device;
  folder_ = std::move(opened);
}

// Through no link: then what it is called is its target, too.
std::optional<AtHand::Found> AtHand::find(const FileAddress& address) const {
  if (!folder_) return std::nullopt;
  auto path = absolute_path(address);
  if (!path || (address.is_target && *path != address.path)) return std::nullopt;
  auto place = open_from_memory(*path);
  if (!place || device_of(*place) != device_) return std::nullopt;
  return Found{*std::move(place), *std::move(path)};
}

std::optional<FileInfo> AtHand::stat(const FileAddress& address) const {
  const auto found = find(address);
  if (!found) return std::nullopt;
  auto info = look_at(found->place, found->path);
  if (!info || info->kind == EntryKind::kSymlink) return std::nullopt;
  return *std::move(info);
}

std::optional<OpenedFile> AtHand::open(const FileAddress& address, const ReadRequest& request,
                                       std::size_t bytes_max) const {
  const auto found = find(address);
  if (!found) return std::nullopt;
  auto reader = FileReader::open(found->place, found->path, request);
  if (!reader) return std::nullopt;
  auto first = reader->next_from_memory(bytes_max);
  if (!first) return std::nullopt;
  return OpenedFile{std::make_shared<FileReader>(*std::move(reader)), *std::move(first)};
}

}  // namespace executor
