#pragma once

#include <vector>

#include "libs/base/fd.h"
#include "libs/base/result.h"
#include "local_e2b/box/blueprint.h"

// The mounts that a box is put together from. Where the builder is the host's root it opens them,
// because init no longer is, and hands them over; elsewhere init opens them in its own namespaces.
namespace local_e2b {

// Their order; the lowers of the overlays follow one by one.
enum Handed : std::size_t { kRootFolder, kLayers, kExecutor, kBakedExecutor, kFirstLower };
inline constexpr std::size_t kHandedMax = 64;

// With a user namespace's descriptor, files of the host show the owners that it maps them to.
base::Result<std::vector<base::Fd>> open_mounts(const Blueprint& plan, int user_namespace = -1);

// Over a socket pair; none at all may be sent, too.
base::Result<base::Done> send_mounts(int socket, const std::vector<base::Fd>& mounts);
base::Result<std::vector<base::Fd>> receive_mounts(int socket);

}  // namespace local_e2b
