#include "libs/manifests/releases.h"

#include "libs/api/records.h"
#include "libs/manifests/record.h"

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::Result;

Result<fs::path> Releases::path_of(const std::string& provider) const {
  return json_file_of(folder_, provider, "provider's name");
}

Result<std::vector<Releases::Release>> Releases::read(const fs::path& path) const {
  TRY(const auto json, read_json_file(path));
  if (!json) return std::vector<Release>{};
  auto releases = api::releases_from_json(*json);
  if (releases) return releases;
  return base::error(base::ErrorCode::kInvalid, path.string(), " is ", releases.error().message,
                     "; ", kRestoreOrRemove);
}

Result<Done> Releases::write(const fs::path& path, const std::vector<Release>& releases) const {
  if (releases.empty()) return disk_.remove(path);
  CHECK_OK(disk_.make_folders(folder_));
  return disk_.write(path, base::to_text(api::to_json(releases)), 0600);
}

Result<Done> Releases::add(const Release& release) {
  std::lock_guard lock(mutex_);
  TRY(const auto path, path_of(release.provider));
  TRY(auto releases, read(path));
  CHECK_OK(api::put_release(releases, release));
  return write(path, releases);
}

Result<std::vector<Releases::Release>> Releases::of(const std::string& provider) {
  std::lock_guard lock(mutex_);
  TRY(const auto path, path_of(provider));
  return read(path);
}

Result<Done> Releases::remove(const std::string& provider, const std::string& sandbox_id) {
  std::lock_guard lock(mutex_);
  TRY(const auto path, path_of(provider));
  TRY(auto releases, read(path));
  if (!api::drop_release(releases, sandbox_id)) return Done{};
  return write(path, releases);
}

}  // namespace manifests
