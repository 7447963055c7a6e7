#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "executor/filesystem/failure.h"
#include "executor/filesystem/walk.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace executor {

class Stagings;

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
  mode_t umask() const;  // Of this process.

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
