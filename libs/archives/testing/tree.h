#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "libs/archives/pack.h"
#include "libs/archives/unpack.h"

namespace archives::testing {

// What stands in a folder, in words: kind, mode, time, content, links, and which files are one.
std::map<std::string, std::string> described(const std::filesystem::path& folder);

// A tree of about `entries` entries of all kinds, sizes, modes and names, another for each seed.
void grow(const std::filesystem::path& folder, unsigned seed, int entries);

base::Fd open_folder(const std::filesystem::path& folder);

// Packed into memory; nothing when it failed.
struct Packed {
  std::string archive;
  Report report;
};
Packed packed(const std::filesystem::path& folder, const PackOptions& options = {});

// Unpacked from memory in pieces of `piece` bytes, aside in a folder that is gone afterwards.
struct Came : Unpacked {
  Report report;
};
Result<Came> unpacked(const std::string& archive, const std::filesystem::path& into,
                      const UnpackOptions& options = {}, std::size_t piece = 64u << 10,
                      const std::stop_token& stop = {});

// A tar archive by hand, for what no writer of ours writes. Each part is a header and its content.
std::string tar_part(const std::string& name, char type, const std::string& content = "",
                     const std::string& link = "", const std::string& size = "");
std::string compressed(const std::string& bytes);

}  // namespace archives::testing
