#include "executor/filesystem/listing.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "executor/filesystem/identity.h"
#include "executor/filesystem/names.h"
#include "executor/filesystem/walk.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

FsResult<base::Fd> open_folder(const std::string& key) {
  const auto place = open_without_links(key, O_PATH);
  if (!place) return FsError(place.error());
  const auto info = look_at(*place, key);
  if (!info) return FsError(info.error());
  if (info->kind == EntryKind::kSymlink) return FsError("list", key, ELOOP);
  if (info->kind != EntryKind::kFolder)
    return fs_error(FsCode::kNotDirectory, key, " is not a folder");
  auto folder = reopen(*place, key, O_RDONLY | O_DIRECTORY);
  if (!folder) return FsError(folder.error());
  return *std::move(folder);
}

void describe(ListedEntry& entry, const FileInfo& info) {
  entry.kind = info.kind;
  entry.version = info.version;
  if (info.kind == EntryKind::kFile) entry.size = info.size;
}

// What a link among the entries leads to; nowhere is not a failure.
FsResult<ListedEntry> follow(ListedEntry entry) {
  struct stat found{};
  const bool broken = ::stat(entry.target.c_str(), &found) != 0;
  if (broken && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
    return FsError("look at", entry.target, errno);
  const auto leads_to = canonical_path(entry.target);
  if (leads_to) entry.target = *leads_to;
  if (broken || !leads_to) return entry;
  const auto place = open_without_links(entry.target, O_PATH);
  if (!place) return entry;  // Gone just now.
  const auto info = look_at(*place, entry.target);
  if (!info) return FsError(info.error());
  describe(entry, *info);
  return entry;
}

// `links`: what to do about an entry that is one.
enum class Links { kFollowed, kShown };

FsResult<ListedEntry> look_at_entry(const base::Fd& folder, const std::string& key,
                                    const std::string& name, Links links) {
  ListedEntry entry{.name = name, .target = below(key, name)};
  const base::Fd place(::openat(folder.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!place && errno == ENOENT) return entry;
  if (!place) return FsError("look at", entry.target, errno);
  const auto info = look_at(place, entry.target);
  if (!info) return FsError(info.error());
  if (info->kind == EntryKind::kSymlink && links == Links::kFollowed) return follow(entry);
  describe(entry, *info);
  return entry;
}

class Tree {
 public:
  Tree(const std::string& key, const TreeRequest& request, const std::stop_token& abort)
      : key_(key), request_(request), abort_(abort) {
    if (!request.after.empty()) resume_ = base::split(request.after, '/');
  }

  FsResult<Page> list() {
    TRY(const base::Fd top, open_folder(key_));
    CHECK_OK(list_level(top, key_, "", 1));
    return std::move(page_);
  }

 private:
  // `prefix` is the path of `folder` below the top, with a slash behind it.
  FsResult<base::Done> list_level(const base::Fd& folder, const std::string& absolute,
                                  const std::string& prefix, std::size_t depth) {
    if (abort_.stop_requested()) return aborted("list", key_);
    // The name on the way to the last page's end was listed then; what is below it was not, or not
    // all.
    const std::string begin = depth <= resume_.size() ? resume_[depth - 1] : "";
    const auto names = first_names(folder, absolute, {begin, true, request_.excludes},
                                   request_.entries_max - page_.entries.size() + 2);
    if (!names) return FsError(names.error());
    for (const std::string& name : *names) {
      if (name != begin) forget_way_below(depth - 1);
      TRY(ListedEntry entry, look_at_entry(folder, absolute, name, Links::kShown));
      const bool opens = entry.kind == EntryKind::kFolder && depth < request_.depth_max;
      entry.name = prefix + name;
      if (name != begin) add(std::move(entry));
      if (opens && !page_.more) CHECK_OK(open_level(folder, absolute, prefix, name, depth));
      if (page_.more) break;
    }
    forget_way_below(depth - 1);
    return base::Done{};
  }

  FsResult<base::Done> open_level(const base::Fd& folder, const std::string& absolute,
                                  const std::string& prefix, const std::string& name,
                                  std::size_t depth) {
    const base::Fd inner(
        ::openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    // It has gone, or is a folder no more.
    if (!inner && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) return base::Done{};
    if (!inner) return FsError("list", below(absolute, name), errno);
    return list_level(inner, below(absolute, name), prefix + name + "/", depth + 1);
  }

  void forget_way_below(std::size_t depth) { resume_.resize(std::min(resume_.size(), depth)); }

  void add(ListedEntry entry) {
    page_.more = page_.entries.size() == request_.entries_max;
    if (!page_.more) page_.entries.push_back(std::move(entry));
  }

  const std::string& key_;
  const TreeRequest& request_;
  const std::stop_token& abort_;
  std::vector<std::string> resume_;  // The names on the way to the last page's end.
  Page page_;
};

}  // namespace

FsResult<Page> list_directory(const std::string& key, const std::string& after,
                              std::size_t entries_max, const std::stop_token& abort) {
  TRY(const base::Fd folder, open_folder(key));
  const auto names = first_names(folder, key, {after, false}, entries_max + 1);
  if (!names) return FsError(names.error());
  Page page;
  page.more = names->size() > entries_max;
  for (std::size_t i = 0; i < names->size() && i < entries_max; ++i) {
    if (abort.stop_requested()) return aborted("list", key);
    TRY(ListedEntry entry, look_at_entry(folder, key, (*names)[i], Links::kFollowed));
    page.entries.push_back(std::move(entry));
  }
  return page;
}

FsResult<Page> list_tree(const std::string& key, const TreeRequest& request,
                         const std::stop_token& abort) {
  return Tree(key, request, abort).list();
}

}  // namespace executor
