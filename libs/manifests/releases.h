#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "libs/api/resource_store.h"
#include "libs/manifests/disk.h"

namespace manifests {

// The release records, one file a provider.
class Releases {
 public:
  using Release = api::ResourceStore::Release;
  Releases(std::filesystem::path folder, const Disk& disk)
      : folder_(std::move(folder)), disk_(disk) {}

  base::Result<base::Done> add(const Release& release);
  base::Result<std::vector<Release>> of(const std::string& provider);
  base::Result<base::Done> remove(const std::string& provider, const std::string& sandbox_id);

 private:
  base::Result<std::filesystem::path> path_of(const std::string& provider) const;
  base::Result<std::vector<Release>> read(const std::filesystem::path& path) const;
  base::Result<base::Done> write(const std::filesystem::path& path,
                                 const std::vector<Release>& releases) const;

  const std::filesystem::path folder_;
  const Disk& disk_;
  std::mutex mutex_;
};

}  // namespace manifests
