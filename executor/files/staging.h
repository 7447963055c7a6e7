#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "executor/files/file_error.h"
#include "executor/users/users.h"
#include "libs/base/fd.h"

namespace executor {

// The name a file bears for the moment between being whole and taking its target's place. It says
// whether the target was there before, for those who watch the folder.
std::string staged_name(bool replaces);
// A private folder in which one is gathered bears a name of this beginning.
inline constexpr std::string_view kPrivateStagingPrefix = ".sandfleet-staged-private-";
// Whatever is on its way, by either name: not to be seen in listings and watches.
bool is_staged_name(std::string_view name);
bool staged_name_replaces(std::string_view name);

// A file on its way: its bytes are gathered in an unnamed file beside the target, so that readers
// of the target see the old content or the new, and one given up leaves nothing behind. Its calls
// block; call them off the loop.
class StagedFile {
 public:
  // Makes missing parents. EISDIR when the target is a folder; a symlink's target is replaced, not
  // the link. A file that is there keeps its mode; a new one has 0666 less the umask.
  static FileResult<StagedFile> begin(const std::string& target, const Users& users,
                                      const User& owner);
  StagedFile(StagedFile&& other) noexcept;
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile();

  FileResult<base::Done> write(std::string_view bytes);
  // Appends all of another file.
  FileResult<base::Done> append_file(const std::string& path);
  // Takes the target's place.
  FileResult<base::Done> commit(const std::map<std::string, std::string>& metadata);
  const std::string& target() const { return target_; }

 private:
  StagedFile() = default;
  FileResult<base::Done> open_beside_target();
  FileResult<std::string> give_it_a_name();
  bool hand_over() const;

  std::string target_;
  bool replaces_ = false;
  mode_t mode_ = 0666;
  std::optional<std::pair<uid_t, gid_t>> owner_;
  base::Fd file_;
  std::string name_;  // Where it stands when the filesystem knows no unnamed files.
};

}  // namespace executor
