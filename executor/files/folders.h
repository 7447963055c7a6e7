#pragma once

#include <string>
#include <vector>

#include "executor/files/entry.h"
#include "executor/files/file_error.h"
#include "executor/users/users.h"

// What can be done with names in the file tree. All of it blocks: call it off the loop. Paths are
// absolute; what is made belongs to `owner` where this process may give it away.
namespace executor {

inline constexpr std::size_t kListedEntriesMax = 100'000;

// EEXIST when the folder is there, ENOTDIR when something else is.
FileResult<base::Done> make_folder(const std::string& path, const Users& users, const User& owner);
// Like mkdir -p; it is fine when all is there. Only the folders made change hands.
FileResult<base::Done> make_parents(const std::string& path, const Users& users, const User& owner);
// Replaces a file at `to`; makes its parents.
FileResult<base::Done> move_entry(const std::string& from, const std::string& to,
                                  const Users& users, const User& owner);
// Down to `depth` levels, in the order of names; symlinks below the first folder are not followed.
// ENOTDIR, ELOOP; E2BIG when there are more than kListedEntriesMax.
FileResult<std::vector<Entry>> list_folder(const std::string& path, unsigned depth,
                                           const Users& users);

}  // namespace executor
