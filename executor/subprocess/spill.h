#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "libs/aio/background.h"
#include "libs/aio/loop.h"
#include "libs/aio/task.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace executor {

class Spill;

// The private folder of a sandbox's spills, and how much they may hold together. The oldest that is
// whole makes room for one that is being written.
class SpillFolder : public std::enable_shared_from_this<SpillFolder> {
 public:
  // Makes the folder, 0700, and removes what an earlier life left there. kInvalid: what is there
  // is not a folder of ours. `background` outlives it.
  static base::Result<std::shared_ptr<SpillFolder>> open(aio::Executor executor,
                                                         const std::filesystem::path& path,
                                                         std::int64_t bytes_max,
                                                         aio::Background& background);

  // For one stream, of up to `bytes_max` bytes.
  std::shared_ptr<Spill> begin(std::int64_t bytes_max);
  void discard(std::shared_ptr<Spill> spill);    // It is gone a moment later.
  std::int64_t bytes() const { return bytes_; }  // Of all that are there.

 private:
  friend class Spill;
  SpillFolder(aio::Executor executor, std::filesystem::path path, std::int64_t bytes_max,
              aio::Background& background)
      : path_(std::move(path)), bytes_max_(bytes_max), background_(background), tasks_(executor) {}
  aio::Task<bool> make_room(std::int64_t bytes);

  std::filesystem::path path_;
  std::int64_t bytes_max_;
  aio::Background& background_;
  std::int64_t bytes_ = 0;
  std::list<std::weak_ptr<Spill>> whole_;  // Oldest first.
  aio::TaskGroup tasks_;
};

// The complete stream of one output as a file, from its first byte. It is shown to nobody before it
// is whole. When it grows too large, or the disk does not take it, it is withheld: gone, and never
// shown.
class Spill : public std::enable_shared_from_this<Spill> {
 public:
  ~Spill();
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  aio::Task<> add(std::string bytes);  // One at a time, in order.
  aio::Task<> finish();                // There is no more to come.
  aio::Task<> withhold();              // Also one that is whole already.
  // Nothing while it is being written, and when it was withheld.
  std::optional<std::string> path() const;

 private:
  friend class SpillFolder;
  enum class State { kWriting, kWhole, kWithheld };
  Spill(std::shared_ptr<SpillFolder> folder, std::filesystem::path path, std::int64_t bytes_max)
      : folder_(std::move(folder)), path_(std::move(path)), bytes_max_(bytes_max) {}
  aio::Task<> remove_file();

  std::shared_ptr<SpillFolder> folder_;
  std::filesystem::path path_;
  std::int64_t bytes_max_;
  State state_ = State::kWriting;
  bool removed_ = false;
  std::shared_ptr<base::Fd> file_ = std::make_shared<base::Fd>();
  std::int64_t bytes_ = 0;
};

}  // namespace executor
