#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "executor/confine/permission.h"
#include "executor/filesystem/failure.h"
#include "executor/filesystem/stagings.h"
#include "libs/archives/compression.h"
#include "libs/archives/report.h"

// Archives of a harness's files. Folders are named by the keys of targets. All of it blocks.
namespace executor {

// As with a file, or the archive itself is at fault.
struct ArchiveError : FsError {
  ArchiveError(FsError error) : FsError(std::move(error)) {}
  ArchiveError(base::Error error) : FsError(std::move(error)) {}
  ArchiveError(const archives::Failure& failure);

  bool unfit = false;
  archives::Report report = {};  // What was unpacked before, into a folder that was there.
};
template <typename T>
using ArchiveResult = base::Result<T, ArchiveError>;

struct CreateRequest {
  std::vector<std::string> excludes;  // Names that are left out, with all below them.
  int level = archives::kLevelUsual;
};
// kNotDirectory for anything but a folder.
ArchiveResult<archives::Report> create_archive(const std::string& key, const CreateRequest& request,
                                               const archives::Sink& sink,
                                               const std::stop_token& abort);

struct ExtractRequest {
  Permission permission;
  std::vector<std::string> excludes;
  bool replace = true;   // Files and links may take each other's place.
  bool set_ids = false;  // Set-id and sticky bits are kept.
  bool durable = false;
  std::uint64_t bytes_max = 64ull << 30;
};
struct Extracted {
  bool created = false;
  archives::Report report;
};
// A folder that is not there appears as a whole, or not at all. Into one that is there, each file
// and link comes whole: when that fails, some have.
ArchiveResult<Extracted> extract_archive(Stagings& stagings, const std::string& key,
                                         const ExtractRequest& request,
                                         const archives::Source& source,
                                         const std::stop_token& abort);

}  // namespace executor
