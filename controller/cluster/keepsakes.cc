#include "controller/cluster/keepsakes.h"

#include "libs/base/crypto.h"

namespace controller {

using base::Done;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::size_t kFleetKeyBytes = 32;
constexpr const char* kFleetKeyName = "key";
constexpr const char* kReleasesName = "releases.json";

void set_releases(ObjectData& data, const std::vector<Keepsakes::Release>& releases) {
  data[kReleasesName] = base::to_text(api::to_json(releases));
}

}  // namespace

OwnObject Keepsakes::secret(const std::string& what) const {
  return {client_, kube::kSecrets, {space_, release_ + "-" + what}};
}

OwnObject Keepsakes::release_record(const std::string& provider) const {
  return {client_, kube::kConfigMaps, {space_, release_ + "-released-" + provider}};
}

OwnObject Keepsakes::ways_in_beside(const std::string& uid) const {
  static_assert(kWaysInSecrets == 256, "one byte tells which");
  return secret("ways-in-" + base::to_hex(base::sha256(uid).substr(0, 1)));
}

Result<std::string> Keepsakes::fleet_key() {
  std::lock_guard lock(mutex_);
  if (!fleet_key_.empty()) return fleet_key_;
  std::string kept;
  CHECK_OK(secret("fleet-key").edit([&](ObjectData& data) -> Result<bool> {
    const auto found = data.find(kFleetKeyName);
    if (found == data.end()) {
      kept = data[kFleetKeyName] = base::random_bytes(kFleetKeyBytes);
      return true;
    }
    kept = found->second;
    if (kept.size() == kFleetKeyBytes) return false;
    return base::error(ErrorCode::kInvalid, "the Secret ", space_, "/", release_,
                       "-fleet-key does not hold ", std::to_string(kFleetKeyBytes),
                       " bytes; restore it from a copy");
  }));
  return fleet_key_ = kept;
}

Result<std::vector<Keepsakes::Release>> Keepsakes::releases_in(const ObjectData& data,
                                                               const std::string& provider) const {
  const auto text = data.find(kReleasesName);
  if (text == data.end()) return std::vector<Release>{};
  const auto json = base::parse_json(text->second);
  auto releases = json ? api::releases_from_json(*json) : json.error();
  if (releases) return releases;
  return base::error(ErrorCode::kInvalid, kReleasesName, " in the ConfigMap ", space_, "/",
                     release_, "-released-", provider, " is ", releases.error().message,
                     "; restore it from a copy, or delete the ConfigMap");
}

Result<Done> Keepsakes::add_release(const Release& release) {
  return release_record(release.provider).edit([&](ObjectData& data) -> Result<bool> {
    TRY(auto releases, releases_in(data, release.provider));
    CHECK_OK(api::put_release(releases, release));
    set_releases(data, releases);
    return true;
  });
}

Result<std::vector<Keepsakes::Release>> Keepsakes::releases(const std::string& provider) const {
  TRY(const auto data, release_record(provider).read());
  return releases_in(data, provider);
}

Result<Done> Keepsakes::remove_release(const std::string& provider, const std::string& sandbox_id) {
  return release_record(provider).edit([&](ObjectData& data) -> Result<bool> {
    TRY(auto releases, releases_in(data, provider));
    if (!api::drop_release(releases, sandbox_id)) return false;
    set_releases(data, releases);
    return true;
  });
}

Result<Done> Keepsakes::keep_way_in(const std::string& uid, const WayIn& way,
                                    const Living& is_living) {
  return ways_in_beside(uid).edit([&](ObjectData& data) -> Result<bool> {
    if (data.size() >= kWaysInOfSecretMax)
      std::erase_if(data, [&](const auto& each) { return !is_living(each.first); });
    if (data.size() >= kWaysInOfSecretMax)
      return base::error(ErrorCode::kRateLimited, "there is no room for the tokens of ", uid);
    data[uid] = base::to_text(api::to_json(way));
    return true;
  });
}

Result<std::optional<Keepsakes::WayIn>> Keepsakes::way_in(const std::string& uid) const {
  TRY(const auto data, ways_in_beside(uid).read());
  const auto found = data.find(uid);
  if (found == data.end()) return std::optional<WayIn>();
  TRY(const auto json, base::parse_json(found->second));
  return std::optional(api::way_in_from_json(json));
}

Result<Done> Keepsakes::forget_way_in(const std::string& uid) {
  return ways_in_beside(uid).edit(
      [&](ObjectData& data) -> Result<bool> { return data.erase(uid) > 0; });
}

}  // namespace controller
