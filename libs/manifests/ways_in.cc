#include "libs/manifests/ways_in.h"

#include "libs/manifests/record.h"

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::Json;
using base::Result;

Result<fs::path> WaysIn::path_of(const std::string& uid) const {
  return json_file_of(folder_, uid, "UID");
}

Result<Done> WaysIn::keep(const std::string& uid, const WayIn& way) const {
  TRY(const auto path, path_of(uid));
  Json json = {{"sandboxID", way.sandbox_id}, {"envdVersion", way.envd_version}};
  if (way.envd_token) json["envdAccessToken"] = *way.envd_token;
  if (way.traffic_token) json["trafficAccessToken"] = *way.traffic_token;
  CHECK_OK(disk_.make_folders(folder_));
  return disk_.write(path, base::to_text(json), 0600);
}

Result<std::optional<WaysIn::WayIn>> WaysIn::of(const std::string& uid) const {
  TRY(const auto path, path_of(uid));
  TRY(const auto json, read_json_file(path));
  if (!json) return std::optional<WayIn>();
  return std::optional(WayIn{base::text_at(*json, "sandboxID").value_or(""),
                             base::text_at(*json, "envdVersion").value_or(""),
                             base::text_at(*json, "envdAccessToken"),
                             base::text_at(*json, "trafficAccessToken")});
}

Result<Done> WaysIn::remove(const std::string& uid) const {
  TRY(const auto path, path_of(uid));
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return Done{};
  return disk_.remove(path);
}

}  // namespace manifests
