#include "libs/manifests/releases.h"

#include <algorithm>

#include "libs/base/time.h"
#include "libs/manifests/record.h"

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::ErrorCode;
using base::Json;
using base::Result;

Result<fs::path> Releases::path_of(const std::string& provider) const {
  return json_file_of(folder_, provider, "provider's name");
}

Result<std::vector<Releases::Release>> Releases::read(const fs::path& path) const {
  std::vector<Release> releases;
  TRY(const auto json, read_json_file(path));
  if (!json || !json->is_array()) return releases;
  for (const Json& each : *json) {
    const auto text = [&each](const char* key) { return base::text_at(each, key).value_or(""); };
    const auto time = base::parse_rfc3339(text("time"));
    releases.push_back({text("sandboxID"), text("uid"), text("provider"), text("policy"),
                        time ? *time : base::WallTime{}});
  }
  return releases;
}

Result<Done> Releases::write(const fs::path& path, const std::vector<Release>& releases) const {
  if (releases.empty()) return disk_.remove(path);
  Json json = Json::array();
  for (const Release& release : releases)
    json.push_back({{"sandboxID", release.sandbox_id},
                    {"uid", release.uid},
                    {"provider", release.provider},
                    {"policy", release.policy},
                    {"time", base::to_rfc3339(release.time)}});
  CHECK_OK(disk_.make_folders(folder_));
  return disk_.write(path, base::to_text(json), 0600);
}

Result<Done> Releases::add(const Release& release) {
  std::lock_guard lock(mutex_);
  TRY(const auto path, path_of(release.provider));
  TRY(auto releases, read(path));
  std::erase_if(releases,
                [&](const Release& each) { return each.sandbox_id == release.sandbox_id; });
  if (releases.size() >= kReleasesMax)
    return base::error(ErrorCode::kRateLimited, "the provider ", release.provider, " has ",
                       std::to_string(kReleasesMax),
                       " released sandboxes on record; end some of them first");
  releases.push_back(release);
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
  if (std::erase_if(releases, [&](const Release& each) { return each.sandbox_id == sandbox_id; }) ==
      0)
    return Done{};
  return write(path, releases);
}

}  // namespace manifests
