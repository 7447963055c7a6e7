#include "libs/api/records.h"

#include "libs/base/time.h"

namespace api {

using base::Json;
using Release = ResourceStore::Release;
using WayIn = ResourceStore::WayIn;

base::Result<base::Done> put_release(std::vector<Release>& releases, const Release& release) {
  drop_release(releases, release.sandbox_id);
  if (releases.size() >= kReleasesMax)
    return base::error(base::ErrorCode::kRateLimited, "the provider ", release.provider, " has ",
                       std::to_string(kReleasesMax),
                       " released sandboxes on record; end some of them first");
  releases.push_back(release);
  return base::Done{};
}

bool drop_release(std::vector<Release>& releases, const std::string& sandbox_id) {
  return std::erase_if(releases,
                       [&](const Release& each) { return each.sandbox_id == sandbox_id; }) > 0;
}

Json to_json(const std::vector<Release>& releases) {
  Json json = Json::array();
  for (const Release& release : releases)
    json.push_back({{"sandboxID", release.sandbox_id},
                    {"uid", release.uid},
                    {"provider", release.provider},
                    {"policy", release.policy},
                    {"time", base::to_rfc3339(release.time)}});
  return json;
}

base::Result<std::vector<Release>> releases_from_json(const Json& json) {
  if (!json.is_array())
    return base::error(base::ErrorCode::kInvalid, "not a list of released sandboxes");
  std::vector<Release> releases;
  for (const Json& each : json) {
    const auto text = [&each](const char* key) { return base::text_at(each, key).value_or(""); };
    const auto time = base::parse_rfc3339(text("time"));
    releases.push_back({text("sandboxID"), text("uid"), text("provider"), text("policy"),
                        time ? *time : base::WallTime{}});
  }
  return releases;
}

Json to_json(const WayIn& way) {
  Json json = {{"sandboxID", way.sandbox_id}, {"envdVersion", way.envd_version}};
  if (way.envd_token) json["envdAccessToken"] = *way.envd_token;
  if (way.traffic_token) json["trafficAccessToken"] = *way.traffic_token;
  return json;
}

WayIn way_in_from_json(const Json& json) {
  return {base::text_at(json, "sandboxID").value_or(""),
          base::text_at(json, "envdVersion").value_or(""), base::text_at(json, "envdAccessToken"),
          base::text_at(json, "trafficAccessToken")};
}

}  // namespace api
