#include "executor/archive/archive.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "executor/files/staging.h"
#include "executor/filesystem/permit.h"
#include "executor/filesystem/publish.h"
#include "executor/filesystem/seam.h"
#include "executor/filesystem/walk.h"
#include "libs/archives/pack.h"
#include "libs/archives/unpack.h"
#include "libs/base/log.h"

namespace executor {
namespace {

FsError fs_error_of(const archives::Failure& failure) {
  switch (failure.fault) {
    case archives::Fault::kTooLarge:
      return {failure, FsCode::kTooLarge};
    case archives::Fault::kExists:
      return {failure, FsCode::kNotObserved};
    case archives::Fault::kCancelled:
      return {failure, FsCode::kAborted};
    case archives::Fault::kUnfit:
      return {failure, FsCode::kIoError};
    case archives::Fault::kFilesystem:
      return FileError(failure, failure.error_number);
  }
  return {failure, FsCode::kIoError};
}

// What is on its way to its place belongs to no archive, in either direction.
std::function<bool(const std::string&)> leaving_out(std::vector<std::string> names) {
  return [names = std::move(names)](const std::string& name) {
    return is_staged_name(name) || std::find(names.begin(), names.end(), name) != names.end();
  };
}

archives::UnpackOptions options_for(const ExtractRequest& request, const Staging& staging) {
  return {.leaves_out = leaving_out(request.excludes),
          .replace = request.replace,
          .set_ids = request.set_ids,
          .umask = staging.umask(),
          .bytes_max = request.bytes_max};
}

ArchiveError no_folder(const std::string& key, const FileError& error) {
  if (error.error_number == ENOTDIR) return fs_error(FsCode::kNotDirectory, key, " is no folder");
  return FsError(error);
}

FsResult<base::Done> sync_filesystem(const base::Fd& folder, const std::string& key) {
  if (::syncfs(folder.get()) != 0) return FsError("sync", key, errno);
  return base::Done{};
}

// Nothing from here on is a failure: it is there.
void finish(const base::Fd& folder, const std::string& key, const archives::Attributes& top) {
  const std::array<std::timespec, 2> times = {std::timespec{0, UTIME_OMIT}, top.modified};
  if (::fchmod(folder.get(), top.mode) != 0 || ::futimens(folder.get(), times.data()) != 0)
    base::log::warn("an archive was unpacked, but its folder's mode and time could not be set",
                    {{"error", base::errno_error("change", key, errno)}});
}

ArchiveResult<Extracted> extract_anew(Stagings& stagings, const std::string& key,
                                      const ExtractRequest& request, const archives::Source& source,
                                      const std::stop_token& abort) {
  if (const auto permitted = permit(request.permission, key); !permitted)
    return ArchiveError(permitted.error());
  const auto place = find_place(key);
  if (!place) return ArchiveError(FsError(place.error()));
  auto staging = stagings.begin(*place);
  if (!staging) return ArchiveError(staging.error());
  if (::mkdirat(staging->folder().get(), Staging::kContent, 0700) != 0)
    return ArchiveError(FsError("make the folder", key, errno));
  const base::Fd content(::openat(staging->folder().get(), Staging::kContent,
                                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!content) return ArchiveError(FsError("open", key, errno));

  archives::UnpackOptions options = options_for(request, *staging);
  options.fresh = true;
  options.take_room = [&](std::uint64_t bytes) -> archives::Result<base::Done> {
    const auto counted = staging->count(bytes);
    if (counted) return base::Done{};
    return archives::Failure(archives::Fault::kTooLarge, counted.error());
  };
  Extracted extracted{.created = true};
  const auto unpacked =
      archives::unpack(source, content, staging->folder(), options, extracted.report, abort);
  if (!unpacked) return ArchiveError(unpacked.error());
  const archives::Attributes top =
      unpacked->top.value_or(archives::Attributes{0777 & ~staging->umask(), {0, UTIME_NOW}});
  // It is yet to move, which takes the right to change it.
  if (::fchmod(content.get(), top.mode | S_IWUSR) != 0)
    return ArchiveError(FsError("set the mode of", key, errno));
  if (request.durable)
    if (const auto synced = sync_filesystem(content, key); !synced)
      return ArchiveError(synced.error());
  reached(Step::kPublishing, key);
  if (abort.stop_requested()) return ArchiveError(aborted("unpack an archive to", key));
  const auto published = publish(*staging, key, Replace::kNever);
  if (!published) return ArchiveError(published.error());
  finish(content, key, top);
  if (request.durable)
    if (const auto synced = sync_names(key, *published); !synced)
      base::log::warn("an archive was unpacked, but not synced", {{"error", synced.error()}});
  return extracted;
}

ArchiveResult<Extracted> extract_into(Stagings& stagings, const std::string& key, base::Fd place,
                                      const ExtractRequest& request, const archives::Source& source,
                                      const std::stop_token& abort) {
  if (const auto permitted = permit(request.permission, below(key, "any")); !permitted)
    return ArchiveError(permitted.error());
  const auto folder = reopen(place, key, O_RDONLY | O_DIRECTORY);
  if (!folder) return ArchiveError(FsError(folder.error()));
  auto staging = stagings.begin({.folder = std::move(place), .folder_path = key});
  if (!staging) return ArchiveError(staging.error());
  Extracted extracted;
  const auto unpacked = archives::unpack(source, *folder, staging->folder(),
                                         options_for(request, *staging), extracted.report, abort);
  if (!unpacked) {
    ArchiveError error(unpacked.error());
    error.report = std::move(extracted.report);
    return error;
  }
  if (request.durable)
    if (const auto synced = sync_filesystem(*folder, key); !synced)
      return ArchiveError(synced.error());
  return extracted;
}

}  // namespace

ArchiveError::ArchiveError(const archives::Failure& failure)
    : FsError(fs_error_of(failure)), unfit(failure.fault == archives::Fault::kUnfit) {}

ArchiveResult<archives::Report> create_archive(const std::string& key, const CreateRequest& request,
                                               const archives::Sink& sink,
                                               const std::stop_token& abort) {
  const auto folder = open_without_links(key, O_RDONLY | O_DIRECTORY);
  if (!folder) return no_folder(key, folder.error());
  auto report = archives::pack(
      *folder, {.leaves_out = leaving_out(request.excludes), .level = request.level}, sink, abort);
  if (!report) return ArchiveError(report.error());
  return *std::move(report);
}

ArchiveResult<Extracted> extract_archive(Stagings& stagings, const std::string& key,
                                         const ExtractRequest& request,
                                         const archives::Source& source,
                                         const std::stop_token& abort) {
  auto place = open_without_links(key, O_PATH | O_DIRECTORY);
  if (place) return extract_into(stagings, key, *std::move(place), request, source, abort);
  if (place.error().error_number != ENOENT) return no_folder(key, place.error());
  return extract_anew(stagings, key, request, source, abort);
}

}  // namespace executor
