#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "libs/base/fd.h"
#include "libs/base/result.h"
#include "libs/wire/admin.h"

namespace executor {

// How what was written reaches the disk.
struct Disk {
  std::function<int(int)> sync = ::fsync;  // A file or folder with all that is known of it.
  std::function<int(int)> sync_data = ::fdatasync;  // What a file holds.
};

// What `resumed` last said here, kept past a power loss. The file has two slots of a block each
// that are written in turn, so that a write which is cut off leaves the one before; nothing of it
// moves or grows, and one sync of its data is all that a write waits for.
class Marker {
 public:
  static constexpr std::size_t kSlotBytes = 4096;

  // Makes the file if there is none. kInvalid: something else has its name.
  static base::Result<Marker> open(const std::filesystem::path& path, Disk disk = {});

  // Nothing when nothing was ever written; kInvalid when no slot can be read.
  base::Result<std::optional<wire::Identity>> read() const;
  base::Result<base::Done> write(const wire::Identity& identity);

  // Brings the file itself to the disk, and its name. A write before that does it too; afterwards
  // the data is all. May run beside everything else.
  base::Result<base::Done> settle() const;

 private:
  struct File;
  Marker(std::filesystem::path path, Disk disk, std::shared_ptr<File> file)
      : path_(std::move(path)), disk_(std::move(disk)), file_(std::move(file)) {}
  bool has_its_name() const;

  std::filesystem::path path_;
  Disk disk_;
  std::shared_ptr<File> file_;  // Also of a `settle` that is still at it.
};

// One slot's content: a number that grows with each write, and what was said. Pure.
struct MarkerRecord {
  std::int64_t sequence = 0;
  wire::Identity identity;
  bool operator==(const MarkerRecord&) const = default;
};
// Marker::kSlotBytes long; kInvalid: there is no room for it.
base::Result<std::string> to_slot(const MarkerRecord& record);
// Nothing for a slot that was never written; kInvalid for one that holds anything else.
base::Result<std::optional<MarkerRecord>> record_in(std::string_view slot);

}  // namespace executor
