#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/base/files.h"

namespace manifests {

using base::Durable;

// Every step that the store takes on disk, so that a test can let a process die, a disk fill up or
// the power fail before any one.
class Disk {
 public:
  enum class Step {
    kChange,  // Outlives a power loss once it is done.
    kLoose,   // A file is replaced or removed: lost unless it is synced, and then its folder.
    kAppend,  // Lost unless it is synced.
    kSync,
  };
  using Gate = std::function<base::Result<base::Done>(const std::filesystem::path&, Step)>;
  explicit Disk(Gate before = {}) : before_(std::move(before)) {}

  // Replaces the file; readers see the old content or the new.
  base::Result<base::Done> write(const std::filesystem::path& path, std::string_view content,
                                 mode_t mode, Durable durable = Durable::kPastPowerLoss) const;
  // A path that is not there is no error.
  base::Result<base::Done> remove(const std::filesystem::path& path,
                                  Durable durable = Durable::kPastPowerLoss) const;
  // A file that was not there before, to add to.
  base::Result<base::Fd> create(const std::filesystem::path& path, mode_t mode) const;
  // Adds to the end.
  base::Result<base::Done> append(const std::filesystem::path& path, std::string_view lines,
                                  mode_t mode) const;
  base::Result<base::Done> append(const base::Fd& file, const std::filesystem::path& path,
                                  std::string_view lines) const;
  // Once it failed, nobody knows what of the file is on disk, and asking again does not tell: the
  // kernel forgets what it could not write. Only writing anew helps.
  base::Result<base::Done> sync(const std::filesystem::path& path) const;  // A file or a folder.
  base::Result<base::Done> sync(const base::Fd& file, const std::filesystem::path& path) const;
  base::Result<base::Done> make_folders(const std::filesystem::path& path) const;  // 0700
  // Removes what write() began in that folder and did not end, because its process died: at most
  // kSweptMax files, not changed for so long; how many. For whoever alone writes there.
  std::size_t sweep(const std::filesystem::path& folder,
                    base::Seconds unchanged = base::Seconds(0)) const;
  static constexpr std::size_t kSweptMax = 10'000;

 private:
  base::Result<base::Done> ask(const std::filesystem::path& path, Step step) const {
    return before_ ? before_(path, step) : base::Done{};
  }
  Gate before_;
};

}  // namespace manifests
