#include "libs/manifests/state_folder.h"

#include <sys/stat.h>

#include <algorithm>

#include "libs/base/files.h"
#include "libs/manifests/record.h"

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::ErrorCode;
using base::Result;

namespace {

// As it is, behind every link, and as far as it is there.
fs::path truly(const fs::path& path) {
  std::error_code error;
  auto found = fs::weakly_canonical(fs::absolute(path, error), error);
  if (!found.has_filename()) found = found.parent_path();  // A slash at its end.
  return found;
}

bool is_within(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

bool leads_to(const fs::path& path, const base::Fd& file) {
  struct stat named{}, held{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(file.get(), &held) == 0 &&
         named.st_dev == held.st_dev && named.st_ino == held.st_ino;
}

}  // namespace

Result<Done> StateFolder::lock() {
  auto locked = base::lock_file(Layout{path_}.lock());
  if (!locked && locked.error().code == ErrorCode::kConflict)
    return base::error(ErrorCode::kConflict, path_.string(),
                       " is used by another controller; stop it, or give this one its own folder");
  if (!locked) return locked.error();
  lock_ = *std::move(locked);
  return Done{};
}

std::optional<base::Error> StateFolder::loss() const {
  if (!lock_ || leads_to(Layout{path_}.lock(), lock_)) return std::nullopt;
  std::error_code error;
  return base::error(
      ErrorCode::kUnavailable, "the state folder ", path_.string(),
      fs::exists(path_, error) ? " is not the one that this controller began with, or was emptied"
                               : " was removed",
      ": nothing is recorded, created or deleted until it is back as it was; without it, stop the "
      "controller and start it again, and it finds its sandboxes by what the manifests remember");
}

// Records would be read as manifests, and keys and tokens stand where people copy and commit.
Result<Done> check_apart(const fs::path& manifests, const fs::path& state) {
  const auto outside = truly(manifests), inside = truly(state);
  std::error_code not_there;
  const bool same = fs::equivalent(outside, inside, not_there) || outside == inside;
  if (!same && !is_within(outside, inside) && !is_within(inside, outside)) return Done{};
  return base::error(ErrorCode::kInvalid, "the folder of manifests (", outside.string(),
                     ") and the state folder (", inside.string(),
                     same ? ") are one" : ") are one inside the other",
                     "; give the controller a state folder of its own, beside the manifests");
}

}  // namespace manifests
