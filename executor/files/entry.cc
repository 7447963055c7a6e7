#include "executor/files/entry.h"

#include <sys/stat.h>
#include <sys/xattr.h>

#include <cerrno>

#include "libs/base/json.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetadataAttribute = "user.sandfleet.metadata";

std::string where_it_leads(const std::string& path) {
  std::error_code failed;
  const fs::path whole = fs::canonical(path, failed);
  if (!failed) return whole.string();
  const fs::path link = fs::read_symlink(path, failed);
  return failed ? path : link.string();
}

std::map<std::string, std::string> read_metadata(const std::string& path) {
  char text[2 * kMetadataBytesMax];
  const ssize_t size = ::getxattr(path.c_str(), kMetadataAttribute, text, sizeof text);
  std::map<std::string, std::string> metadata;
  if (size <= 0) return metadata;
  const auto json = base::parse_json(std::string_view(text, static_cast<std::size_t>(size)));
  if (!json || !json->is_object()) return metadata;
  for (const auto& [key, value] : json->items())
    if (value.is_string()) metadata[key] = value.get<std::string>();
  return metadata;
}

}  // namespace

EntryKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::kFile;
  if (S_ISDIR(mode)) return EntryKind::kFolder;
  if (S_ISLNK(mode)) return EntryKind::kSymlink;
  return EntryKind::kOther;
}

std::string permissions_text(EntryKind kind, std::uint32_t mode) {
  std::string text = kind == EntryKind::kFolder ? "d" : kind == EntryKind::kSymlink ? "L" : "-";
  constexpr std::string_view kLetters = "rwxrwxrwx";
  for (std::size_t i = 0; i < kLetters.size(); ++i) text += mode & (0400u >> i) ? kLetters[i] : '-';
  return text;
}

FileResult<Entry> stat_entry(const std::string& path, const Users& users) {
  struct stat itself{}, found{};
  // Below something that is no folder there is nothing either.
  if (::lstat(path.c_str(), &itself) != 0)
    return FileError("look at", path, errno == ENOTDIR ? ENOENT : errno);
  found = itself;
  const bool symlink = S_ISLNK(itself.st_mode);
  if (symlink && ::stat(path.c_str(), &found) != 0) found = itself;

  Entry entry;
  entry.path = path;
  entry.name = path == "/" ? "/" : fs::path(path).filename().string();
  entry.kind = kind_of(found.st_mode);
  entry.size = found.st_size;
  entry.mode = found.st_mode & 07777;
  entry.permissions = permissions_text(entry.kind, entry.mode);
  entry.owner = users.name_of_user(found.st_uid);
  entry.group = users.name_of_group(found.st_gid);
  entry.modified = base::WallTime(
      base::Milliseconds(found.st_mtim.tv_sec * 1000 + found.st_mtim.tv_nsec / 1'000'000));
  if (symlink) entry.symlink_target = where_it_leads(path);
  if (entry.kind == EntryKind::kFile) entry.metadata = read_metadata(path);
  return entry;
}

void set_metadata(int fd, const std::map<std::string, std::string>& metadata) {
  if (metadata.empty()) return;
  const std::string text = base::to_text(base::Json(metadata));
  ::fsetxattr(fd, kMetadataAttribute, text.data(), text.size(), 0);
}

}  // namespace executor
