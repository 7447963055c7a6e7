#pragma once

#include "libs/base/result.h"
#include "local_e2b/box/blueprint.h"

namespace local_e2b {

// Writes what is a box's own on the disk, every entry owned by an id of the box: <folder>/root, its
// private root, and <folder>/layers/N/{lower,upper,work}, where overlay number N is put together.
// Run by the builder.
base::Result<base::Done> write_root(const Blueprint& plan);

}  // namespace local_e2b
