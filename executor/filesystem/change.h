#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "executor/confine/permission.h"
#include "executor/filesystem/failure.h"
#include "executor/filesystem/removing.h"

// What is done with whole entries. What is moved or removed is named by locate_entry(), so it may
// be a link itself. All of it blocks.
namespace executor {

struct MakeRequest {
  Permission permission;
  bool parents = false;
  std::optional<mode_t> mode = {};  // Of the last one; else 0777 less the umask.
};
// False when a folder was there. kNotFound without its parent; kNotDirectory when something else is
// there.
FsResult<bool> make_directory(const std::string& key, const MakeRequest& request);

struct RemoveRequest {
  Permission permission;
  bool recursive = false;
};
inline constexpr std::uint64_t kRemovedAtOnceMax = 2048;
// One pass; call it again until all is gone. kNotFound; kIoError for "/", a mount point and what
// holds one, before anything is gone.
FsResult<Removed> remove_pass(const std::string& key, const RemoveRequest& request,
                              const std::stop_token& abort);

struct MoveRequest {
  Permission permission;
  bool replace = true;
};
// kNotObserved when something is there that may not give way; a folder gives way only when it is
// empty and to a folder. kIoError between filesystems.
FsResult<base::Done> move_to(const std::string& from, const std::string& to,
                             const MoveRequest& request);

}  // namespace executor
