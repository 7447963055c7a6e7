#pragma once

#include <string>

#include "executor/filesystem/failure.h"
#include "executor/filesystem/staging.h"
#include "executor/filesystem/walk.h"

// How a staged file or tree becomes visible: with one call of the kernel, so that others see all of
// it or nothing, and the folders it still lacks come along. All of it blocks.
namespace executor {

enum class Replace { kAllowed, kNever };

// Moves a name to a place; what is there gives way only where that is allowed. EEXIST.
FileResult<base::Done> move_name(const base::Fd& from, const std::string& name, const base::Fd& to,
                                 const std::string& new_name, Replace replace);

// Moves the staging's content to `key`. kNotObserved when something is there that may not be
// replaced; kNotRegularFile when what is there is a folder. When it has failed, nothing was
// changed; else, how many folders came along.
FsResult<std::size_t> publish(Staging& staging, const std::string& key, Replace replace);

// Makes the name of what was published outlast a loss of power, and those of the folders that came
// along.
FsResult<base::Done> sync_names(std::string key, std::size_t folders);

}  // namespace executor
