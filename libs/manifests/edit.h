#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/json.h"
#include "libs/base/result.h"

namespace manifests {

// The text with one scalar replaced, or added to a block mapping that is there, all else as it was,
// comments included: the result is read again and differs by that one value, or the edit is refused
// as kInvalid with the reason (an anchor, an alias, a merge, a value of many lines, a flow mapping
// to add to). `document` counts from 0; `path` is like {"spec", "desiredState"}; list items are
// numbers.
base::Result<std::string> edit_scalar(std::string_view text, int document,
                                      const std::vector<std::string>& path,
                                      const base::Json& value);

// The same on a file, atomically and with its mode kept. kConflict when the file changed meanwhile.
base::Result<base::Done> edit_scalar_in_file(const std::filesystem::path& file, int document,
                                             const std::vector<std::string>& path,
                                             const base::Json& value);

// Checks a manifest and copies it into the folder as `name` (which ends in .yaml, .yml or .json).
// An object that another file of the folder declares is refused, as is a change that the rules
// forbid.
base::Result<base::Done> apply_manifest(const std::filesystem::path& folder,
                                        const std::string& name, std::string_view text,
                                        const std::string& space = "default");

}  // namespace manifests
