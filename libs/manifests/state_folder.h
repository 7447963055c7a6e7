#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace manifests {

// The folder in which one controller keeps its records: apart from the manifests, its own, and
// still the one that it began with.
class StateFolder {
 public:
  explicit StateFolder(std::filesystem::path path) : path_(std::move(path)) {}

  // kConflict: another controller has it.
  base::Result<base::Done> lock();
  // Why it is not the one that was locked any more: it was removed, emptied, or another is in its
  // place. What is written then would be lost, or mixed with what another kept there; what is not
  // found there proves nothing.
  std::optional<base::Error> loss() const;

 private:
  const std::filesystem::path path_;
  base::Fd lock_ = {};
};

// kInvalid where one is the other, or within it, behind whatever link.
base::Result<base::Done> check_apart(const std::filesystem::path& manifests,
                                     const std::filesystem::path& state);

}  // namespace manifests
