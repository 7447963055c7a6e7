#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "libs/api/resource_store.h"
#include "libs/manifests/disk.h"

namespace manifests {

// What providers tell only once, one file for each UID, 0600. Whoever ends an object removes it.
class WaysIn {
 public:
  using WayIn = api::ResourceStore::WayIn;
  WaysIn(std::filesystem::path folder, const Disk& disk)
      : folder_(std::move(folder)), disk_(disk) {}

  base::Result<base::Done> keep(const std::string& uid, const WayIn& way) const;
  base::Result<std::optional<WayIn>> of(const std::string& uid) const;
  base::Result<base::Done> remove(const std::string& uid) const;

 private:
  base::Result<std::filesystem::path> path_of(const std::string& uid) const;

  const std::filesystem::path folder_;
  const Disk& disk_;
};

}  // namespace manifests
