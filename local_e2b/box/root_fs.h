#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "libs/base/result.h"
#include "local_e2b/box/blueprint.h"

// The private folder that becomes a box's root: written by the builder as the host's root, every
// entry owned by an id of the box.
namespace local_e2b {

// Writes <folder>/root and <folder>/layers. What a box gets of the host's /etc is an allow-list,
// and of that only what everybody on the host may read.
base::Result<base::Done> write_root(const Blueprint& plan);

// Whether a name in the host's /etc is on the allow-list.
bool shown_of_etc(const std::string& name);

// The three files of accounts, for root and `user`.
std::string passwd_text();
std::string group_text();
std::string shadow_text();

}  // namespace local_e2b
