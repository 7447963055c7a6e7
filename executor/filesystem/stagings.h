#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "executor/filesystem/failure.h"
#include "executor/filesystem/walk.h"
#include "libs/base/result.h"

namespace executor {

class Staging;

// Where new content is gathered until it is whole: a file without a name in the folder where it is
// to stand, or a private folder (0700) there. A crash leaves no more than such a folder, or a file
// that had just got a name of its own; the next start removes them, since the folders that they
// stand in are on record in the runtime folder. Safe to use from several threads; what it gives out
// keeps it alive.
class Stagings : public std::enable_shared_from_this<Stagings> {
 public:
  struct Limits {
    std::size_t stagings = 256;  // At once.
    std::uint64_t file_bytes = 64ull << 30;
    std::uint64_t bytes = 128ull << 30;  // In all that are there at once.
    std::size_t folders = 4096;          // On record; beyond it the record is written anew.
  };

  // Sweeps what an earlier process left and begins a new record. Only one process at a time may
  // have one by this runtime folder. Blocks.
  static base::Result<std::shared_ptr<Stagings>> open(const std::filesystem::path& runtime_folder,
                                                      Limits limits);
  static base::Result<std::shared_ptr<Stagings>> open(const std::filesystem::path& runtime_folder) {
    return open(runtime_folder, Limits{});
  }
  ~Stagings();
  Stagings(const Stagings&) = delete;
  Stagings& operator=(const Stagings&) = delete;

  // A private folder in `place.folder`. kIoError with kRateLimited when too many are there. Blocks.
  FsResult<Staging> begin(const Place& place);
  // The same for a file, which takes write_at(): one without a name where the filesystem knows
  // such.
  FsResult<Staging> begin_file(const Place& place);
  const Limits& limits() const { return limits_; }
  std::size_t count() const;                    // Now.
  std::uint64_t bytes() const;                  // In them.
  std::size_t swept() const { return swept_; }  // By open().

 private:
  friend class Staging;
  struct State;
  Stagings(Limits limits, mode_t umask);

  FsResult<Staging> admit();
  // `staging` has its name in that folder from here on, where it is on record.
  FsResult<base::Done> settle(Staging& staging, const Place& place);
  // False when there is no room for so much.
  bool take_bytes(std::uint64_t bytes);
  void ended(const Staging& staging);

  const Limits limits_;
  const mode_t umask_;
  std::size_t swept_ = 0;
  std::unique_ptr<State> state_;
};

}  // namespace executor
