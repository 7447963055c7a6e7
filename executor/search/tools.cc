#include "executor/search/tools.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "executor/filesystem/version.h"
#include "libs/base/file_digest.h"
#include "libs/base/files.h"
#include "libs/base/folder.h"
#include "libs/base/log.h"
#include "libs/base/staged.h"

namespace executor {

const Tool& ripgrep() {
#if defined(__aarch64__)
  static constexpr Tool kTool{
      "rg", "e152ea689d6e8420357e592f0d8253b96476c164118ca3e6e13074fa1705ddda", 4'771'240};
#else
  static constexpr Tool kTool{
      "rg", "193906679498de4d939345b937fa24e0e69a03c244bd70c859f5e41232713f21", 5'728'032};
#endif
  return kTool;
}

ToolPlace::ToolPlace(Tool tool, std::string folder, std::vector<std::string> others)
    : tool_(tool), folder_(std::move(folder)), others_(std::move(others)) {
  sweep();
}

void ToolPlace::sweep() const {
  for (const std::filesystem::path& path : base::entries_of(folder_)) {
    const std::string name = path.filename().string();
    if (!base::is_staged_name_of(tool_.name, name)) continue;
    if (::unlink(path.c_str()) != 0 && errno != ENOENT)
      base::log::warn("cannot remove what an earlier executor left half-written",
                      {{"error", base::errno_error("remove", path, errno)}});
  }
}

std::string ToolPlace::place_in(const std::string& folder) const {
  return folder + "/" + std::string(tool_.name);
}

bool ToolPlace::holds_the_tool(const std::string& path, std::string& version) const {
  const base::Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return false;
  const auto found = look_at(file, path);
  if (!found || found->kind != EntryKind::kFile || !std::cmp_equal(found->size, tool_.bytes) ||
      !(found->mode & S_IXUSR))
    return false;
  version = found->version;
  if (path == known_path_ && version == known_version_) return true;
  const auto digest = base::sha256_of(file, path);
  return digest && *digest == tool_.sha256;
}

std::optional<std::string> ToolPlace::find() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> folders = {folder_};
  folders.insert(folders.end(), others_.begin(), others_.end());
  for (const std::string& folder : folders) {
    std::string path = place_in(folder), version;
    if (!holds_the_tool(path, version)) continue;
    known_path_ = path;
    known_version_ = std::move(version);
    return path;
  }
  return std::nullopt;
}

base::Result<std::unique_ptr<ToolPlace::Delivery>> ToolPlace::receive() const {
  CHECK_OK(base::make_folders(folder_, 0700));
  const std::string path = folder_ + "/" + base::staged_name(tool_.name);
  base::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700));
  if (!file) return base::errno_error("write", path, errno);
  return std::unique_ptr<Delivery>(new Delivery(*this, path, std::move(file)));
}

ToolPlace::Delivery::~Delivery() {
  if (!committed_) ::unlink(path_.c_str());
}

base::Result<base::Done> ToolPlace::Delivery::add(std::string_view bytes) {
  bytes_ += static_cast<std::int64_t>(bytes.size());
  if (bytes_ > place_.tool_.bytes)
    return base::error(base::ErrorCode::kInvalid, "it is longer than ", place_.tool_.name, " is");
  digest_.add(bytes);
  return base::write_all(file_.get(), bytes);
}

base::Result<std::string> ToolPlace::Delivery::commit() {
  if (base::to_hex(digest_.finish()) != place_.tool_.sha256)
    return base::error(base::ErrorCode::kInvalid, "this is not the ", place_.tool_.name,
                       " that is meant: its SHA-256 is another");
  std::string path = place_.place_in(place_.folder_);
  if (::fchmod(file_.get(), 0500) != 0) return base::errno_error("write", path, errno);
  file_.reset();  // What is open for writing cannot be executed.
  if (::rename(path_.c_str(), path.c_str()) != 0) return base::errno_error("write", path, errno);
  committed_ = true;
  return path;
}

}  // namespace executor
