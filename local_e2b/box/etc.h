#pragma once

#include <filesystem>
#include <string>

#include "libs/base/result.h"

// The /etc that boxes start from: a copy of what is on an allow-list in the host's, with accounts
// of our own. One copy serves all boxes, each through an overlay; so it never changes once it is
// there.
namespace local_e2b {

// Returns the copy's folder, <state>/etc/<digest>, made if it is missing. Copies of an older /etc
// that no box in `boxes` refers to (by its link named kEtcLink) are removed. Where boxes have a
// `single` id, the account `user` is root by another name, with a home of its own.
base::Result<std::filesystem::path> prepare_etc(const std::filesystem::path& state,
                                                const std::filesystem::path& boxes, bool single);
inline constexpr char kEtcLink[] = "etc";

// Whether a name in the host's /etc is on the allow-list.
bool shown_of_etc(const std::string& name);

}  // namespace local_e2b
