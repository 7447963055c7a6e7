#pragma once

#include <filesystem>

#include "libs/base/result.h"

namespace cli {

// A folder of ours that goes with all in it.
class Aside {
 public:
  static base::Result<Aside> in(const std::filesystem::path& folder);
  Aside(Aside&& other) noexcept;
  Aside& operator=(Aside&&) = delete;
  ~Aside();
  const std::filesystem::path& path() const { return path_; }

 private:
  Aside() = default;
  std::filesystem::path path_;
};

}  // namespace cli
