#include "executor/filesystem/stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "executor/filesystem/walk.h"

namespace executor {
namespace {

using Locator = FsResult<Target> (*)(const FileAddress&);

FsResult<std::optional<EntryInfo>> look(Locator locator, const FileAddress& address) {
  const auto target = locator(address);
  const bool blank = !absolute_path(address);
  if (!target && target.error().fs == FsCode::kNotFound && !blank)
    return std::optional<EntryInfo>();
  if (!target) return target.error();
  const auto place = open_without_links(target->key, O_PATH);
  if (!place && (place.error().error_number == ENOENT || place.error().error_number == ENOTDIR))
    return std::optional<EntryInfo>();
  if (!place) return FsError(place.error());
  auto info = look_at(*place, target->key);
  if (!info) return FsError(info.error());
  EntryInfo entry{*std::move(info)};
  if (entry.info.kind != EntryKind::kSymlink) return std::optional(std::move(entry));
  char text[PATH_MAX];
  const ssize_t size = ::readlinkat(place->get(), "", text, sizeof text);
  if (size < 0) return FsError("follow", target->key, errno);
  entry.link_target.emplace(text, static_cast<std::size_t>(size));
  return std::optional(std::move(entry));
}

}  // namespace

FsResult<std::optional<FileInfo>> stat_target(const FileAddress& address) {
  TRY(std::optional<EntryInfo> found, look(locate, address));
  if (!found) return std::optional<FileInfo>();
  if (found->link_target) return FsError("look at", address.path, ELOOP);
  return std::optional<FileInfo>(std::move(found->info));
}

FsResult<std::optional<EntryInfo>> stat_entry(const FileAddress& address) {
  return look(locate_entry, address);
}

}  // namespace executor
