#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "libs/base/fd.h"
#include "libs/base/result.h"
#include "local_e2b/state/json_folder.h"
#include "local_e2b/state/sandbox.h"

namespace local_e2b {

// The server's state folder: a lock that one server holds, and the sandboxes' records, one file
// each.
class Records {
 public:
  // kConflict when another server works in the folder.
  static base::Result<Records> open(const std::filesystem::path& state);

  base::Result<base::Done> save(const Sandbox& sandbox) const;
  void remove(const std::string& id) const { sandboxes_.remove(id); }
  // Those that can be read; the box of one that cannot counts as unknown.
  std::vector<Sandbox> load() const;

 private:
  Records(JsonFolder sandboxes, base::Fd lock)
      : sandboxes_(std::move(sandboxes)), lock_(std::move(lock)) {}

  JsonFolder sandboxes_;
  base::Fd lock_;
};

}  // namespace local_e2b
