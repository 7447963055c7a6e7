#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "executor/filesystem/failure.h"
#include "executor/filesystem/walk.h"
#include "libs/base/fd.h"
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

// One private folder, with room for one entry: "content"; or one file, which has a name only from
// the moment before it takes its target's place. Removed with all in it when it ends, but for what
// was moved out. One thread at a time.
class Staging {
 public:
  static constexpr const char* kContent = "content";

  Staging(Staging&& other) noexcept = default;
  Staging& operator=(Staging&&) = delete;
  ~Staging();

  // Up to a byte behind the last one so far, or over what is there already. kTooLarge.
  FsResult<base::Done> write_at(std::uint64_t offset, std::string_view bytes);
  // So many bytes have come to it in another way. kTooLarge.
  FsResult<base::Done> count(std::uint64_t bytes);
  std::uint64_t size() const { return size_; }
  mode_t umask() const { return all_->umask_; }  // Of this process.

  const base::Fd& file() const { return file_; }
  const base::Fd& folder() const { return folder_; }  // The private one; empty without.
  const std::string& path() const { return path_; }

  // From here on the content has a name, in the private folder or in that of `place`, and can be
  // moved from there.
  FsResult<base::Done> name_content(const Place& place);
  // The same, and there is a private folder, in that of `place` if there was none so far.
  FsResult<base::Done> wrap_content(const Place& place);
  const base::Fd& content_folder() const { return folder_ ? folder_ : parent_; }
  std::string content_name() const { return folder_ ? kContent : name_; }
  // Removes it now.
  void clear();

 private:
  friend class Stagings;
  Staging() = default;
  bool open_without_name(const Place& place);
  FsResult<base::Done> make_folder(const Place& place);
  FsResult<base::Done> make_file();
  FsResult<base::Done> link_file(const base::Fd& folder, const std::string& name);

  std::shared_ptr<Stagings> all_;
  base::Fd parent_;  // Where its own name stands; empty as long as that stands nowhere.
  std::string parent_path_, name_, path_;
  base::Fd folder_, file_;
  std::uint64_t size_ = 0;     // Of the file.
  std::uint64_t counted_ = 0;  // Taken of the bound for all.
};

}  // namespace executor
