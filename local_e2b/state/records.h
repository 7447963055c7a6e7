#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "libs/base/fd.h"
#include "libs/base/result.h"
#include "local_e2b/state/sandbox.h"

namespace local_e2b {

// The server's state folder: one JSON file a sandbox under sandboxes/, 0600 because it holds
// tokens, and a lock that one server holds. A file is replaced as a whole, so that it outlives
// `kill -9`; a power loss ends the boxes too, so nothing waits for the disk.
class Records {
 public:
  // kConflict when another server works in the folder.
  static base::Result<Records> open(const std::filesystem::path& state);

  base::Result<base::Done> save(const Sandbox& sandbox) const;
  void remove(const std::string& id) const;
  // Those that can be read; one that cannot is named in the log and removed, so that its box
  // counts as unknown.
  std::vector<Sandbox> load() const;

 private:
  Records(std::filesystem::path folder, base::Fd lock)
      : folder_(std::move(folder)), lock_(std::move(lock)) {}
  std::filesystem::path path_of(const std::string& id) const { return folder_ / (id + ".json"); }

  std::filesystem::path folder_;
  base::Fd lock_;
};

}  // namespace local_e2b
