#pragma once

#include <optional>
#include <string>

#include "executor/confine/permission.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"

// Programs that may change no more than their caller, held to it by Landlock (landlock(7)). They
// read and run what they like, may change files below the permission's writable roots alone, and
// can signal only one another. A program so confined gains nothing by set-user-ID: no sudo. What
// Landlock does not watch: the mode, owner, times and extended attributes of files that are theirs,
// and sockets that have a path.
namespace executor {

// The kernel's Landlock: 0 where it has none or it is switched off.
int landlock_abi();

// Why programs cannot be held to `mode` on a kernel with this Landlock; nothing when they can.
std::optional<std::string> why_unconfinable(PermissionMode mode, int abi);

// What enter_confinement() needs, made before the fork; an empty Fd under kDangerFullAccess, which
// confines nobody. kUnavailable, with the reason: the kernel cannot hold a program to it. Blocks.
base::Result<base::Fd> make_confinement(const Permission& permission);

// Binds this process, and all that it will start, for good. System calls only, so that it may stand
// between fork and exec; false with errno. Descriptors that are open keep their power.
bool enter_confinement(int confinement);

}  // namespace executor
