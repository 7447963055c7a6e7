#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "libs/base/json.h"
#include "libs/base/result.h"

namespace local_e2b {

// A folder of JSON files, 0600 because they hold tokens. A file is replaced as a whole, so that it
// outlives `kill -9`; a power loss ends the boxes too, so nothing waits for the disk.
class JsonFolder {
 public:
  static base::Result<JsonFolder> open(std::filesystem::path folder);

  base::Result<base::Done> save(const std::string& name, const base::Json& json) const;
  void remove(const std::string& name) const;
  // Gives `take` each. One that cannot be read, or that `take` refuses, is named in the log with
  // what follows of it, and removed.
  void each(const std::function<base::Result<base::Done>(const base::Json&)>& take,
            std::string_view what_follows) const;

 private:
  explicit JsonFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path path_of(const std::string& name) const {
    return folder_ / (name + ".json");
  }

  std::filesystem::path folder_;
};

}  // namespace local_e2b
