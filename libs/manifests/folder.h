#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "libs/manifests/plan.h"

namespace manifests {

inline constexpr std::size_t kFilesMax = 100'000;

// Reads the manifests of one folder, and again only those that changed.
class FolderReader {
 public:
  FolderReader(std::filesystem::path folder, std::string space)
      : folder_(std::move(folder)), space_(std::move(space)) {}

  // Every file that ends in .yaml, .yml or .json, hidden ones apart, by name. A file that cannot be
  // read is there with that problem, a folder of such a name without any; the folder itself fails.
  base::Result<std::vector<ReadFile>> read_all();
  const std::filesystem::path& path() const { return folder_; }

 private:
  struct Stamp {
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Known {
    Stamp stamp;
    bool settled = false;  // So old when it was read that a later change must show in the stamp.
    std::shared_ptr<const Reading> reading;
    std::string digest = {};  // Of the content: a file that was only touched is not parsed again.
  };
  base::Result<std::vector<std::string>> names() const;
  Known read(const std::string& name) const;

  std::filesystem::path folder_;
  std::string space_;
  std::map<std::string, Known> known_;
};

}  // namespace manifests
