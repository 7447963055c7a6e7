#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "libs/manifests/disk.h"
#include "libs/manifests/plan.h"

namespace manifests {

// Secrets of the manifests. They are kept in memory, with one exception: a Secret whose document is
// gone or broken while something still refers to it is written to a 0600 file of the state folder,
// because without it sandboxes could not be deleted any more; the file goes with the last
// reference.
class Secrets {
 public:
  Secrets(std::filesystem::path retained, const Disk& disk)
      : path_(std::move(retained)), disk_(disk) {}

  base::Result<base::Done> load();
  // True when a value changed. `referred` is asked only when a Secret is missing.
  base::Result<bool> take(const std::vector<ReadFile>& files,
                          const std::function<std::set<api::Key>()>& referred,
                          std::vector<yaml::Problem>& problems);
  base::Result<std::string> find(const api::Key& secret, const std::string& key) const;

 private:
  using Values = std::map<std::string, std::string>;
  base::Result<base::Done> retain(std::map<api::Key, Values> retained);

  const std::filesystem::path path_;
  const Disk& disk_;
  mutable std::mutex mutex_;
  std::map<api::Key, Values> secrets_;
  std::map<api::Key, Values> retained_;  // As in the file.
};

}  // namespace manifests
