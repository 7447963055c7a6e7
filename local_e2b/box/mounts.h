#pragma once

#include <filesystem>
#include <string>

#include "libs/base/fd.h"
#include "libs/base/result.h"

// The mount calls that a box is built with. Targets are relative to the working folder, which is
// the box's root while it is built.
namespace local_e2b {

// A copy of the mount at `path`, attached nowhere and sharing no events with the host. With a user
// namespace's descriptor, files show the owners that the namespace maps them to.
base::Result<base::Fd> clone_mount(const std::filesystem::path& path, int user_namespace = -1,
                                   bool read_only = false);
base::Result<base::Done> attach_mount(int mount, const char* target);
base::Result<base::Done> mount_kind(const char* kind, const char* target, unsigned long flags,
                                    const std::string& options = {});
base::Result<base::Done> bind(const char* source, const char* target);
base::Result<base::Done> make_read_only(const char* target);

}  // namespace local_e2b
