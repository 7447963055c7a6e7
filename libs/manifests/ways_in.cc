#include "libs/manifests/ways_in.h"

#include "libs/api/records.h"
#include "libs/manifests/record.h"

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::Result;

Result<fs::path> WaysIn::path_of(const std::string& uid) const {
  return json_file_of(folder_, uid, "UID");
}

Result<Done> WaysIn::keep(const std::string& uid, const WayIn& way) const {
  TRY(const auto path, path_of(uid));
  CHECK_OK(disk_.make_folders(folder_));
  return disk_.write(path, base::to_text(api::to_json(way)), 0600);
}

Result<std::optional<WaysIn::WayIn>> WaysIn::of(const std::string& uid) const {
  TRY(const auto path, path_of(uid));
  TRY(const auto json, read_json_file(path));
  return json ? std::optional(api::way_in_from_json(*json)) : std::nullopt;
}

Result<Done> WaysIn::remove(const std::string& uid) const {
  TRY(const auto path, path_of(uid));
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return Done{};
  return disk_.remove(path);
}

}  // namespace manifests
