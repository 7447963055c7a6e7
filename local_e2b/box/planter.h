#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "libs/base/crypto.h"
#include "libs/base/result.h"
#include "local_e2b/box/uid_ranges.h"

namespace local_e2b {

inline constexpr std::uint32_t kRootInside = 0, kUserInside = 1000;

// Writes entries beneath a folder, owned by ids of a box. Without a folder it writes nothing and
// only finds the digest.
class Planter {
 public:
  Planter(std::filesystem::path top, const BoxIds& ids) : top_(std::move(top)), ids_(ids) {}

  base::Result<base::Done> folder(const std::filesystem::path& at, mode_t mode,
                                  std::uint32_t owner = kRootInside);
  // With the folders above it, each 0755.
  base::Result<base::Done> folders(const std::filesystem::path& at);
  base::Result<base::Done> file(const std::filesystem::path& at, std::string_view text, mode_t mode,
                                std::uint32_t owner = kRootInside);
  base::Result<base::Done> link(const std::filesystem::path& to, const std::filesystem::path& at);
  // A file, link or folder of the host, with what is in it in the order of names. What not
  // everybody on the host may read is left out.
  base::Result<base::Done> copy(const std::filesystem::path& from, const std::filesystem::path& at,
                                std::uint32_t owner = kRootInside, int depth = 0);

  // Of everything that was planted: names, modes and contents. Call once.
  std::string digest() { return base::to_hex(digest_.finish()); }

 private:
  base::Result<base::Done> own(const std::filesystem::path& target, std::uint32_t owner);
  void note(char kind, const std::filesystem::path& at, mode_t mode, std::string_view content);

  const std::filesystem::path top_;
  const BoxIds ids_;
  base::Sha256 digest_;
};

}  // namespace local_e2b
