#include "executor/confine/permission.h"

#include <algorithm>
#include <filesystem>

#include "executor/files/path.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

int width(PermissionMode mode) {
  switch (mode) {
    case PermissionMode::kReadOnly:
      return 0;
    case PermissionMode::kWorkspaceWrite:
      return 1;
    case PermissionMode::kDangerFullAccess:
      return 2;
  }
  return 0;
}

std::optional<std::string> canonical_folder(const std::string& path) {
  std::error_code failed;
  const fs::path found = fs::canonical(path, failed);
  if (failed || !fs::is_directory(found, failed)) return std::nullopt;
  return found.string();
}

// The folder that all of `folders` hold: one of them that is within each other one.
std::optional<std::string> innermost(const std::vector<std::string>& folders) {
  std::optional<std::string> held;
  for (const std::string& folder : folders) {
    const auto found = canonical_folder(folder);
    if (!found) return std::nullopt;
    if (!held || is_within(*found, *held)) {
      held = found;
    } else if (!is_within(*held, *found)) {
      return std::nullopt;
    }
  }
  return held;
}

}  // namespace

Permission narrow(Permission ceiling, std::optional<std::string_view> mode,
                  std::optional<std::string> workspace) {
  if (mode) {
    const PermissionMode asked = wire::ceiling_of(*mode).value_or(PermissionMode::kReadOnly);
    if (is_wider(ceiling.mode, asked)) ceiling.mode = asked;
  }
  if (workspace) ceiling.workspaces.push_back(*std::move(workspace));
  return ceiling;
}

bool is_wider(PermissionMode made, PermissionMode caller) { return width(made) > width(caller); }

const std::vector<std::string>& temporary_areas() {
  static const std::vector<std::string> kAreas{"/tmp", "/var/tmp", "/dev/shm"};
  return kAreas;
}

std::vector<std::string> writable_roots(const Permission& permission) {
  std::vector<std::string> roots;
  switch (permission.mode) {
    case PermissionMode::kReadOnly:
      return roots;
    case PermissionMode::kDangerFullAccess:
      return {"/"};
    case PermissionMode::kWorkspaceWrite:
      break;
  }
  if (auto workspace = innermost(permission.workspaces)) roots.push_back(*std::move(workspace));
  for (const std::string& area : temporary_areas())
    if (auto found = canonical_folder(area)) roots.push_back(*std::move(found));
  return roots;
}

bool may_change(const std::vector<std::string>& roots, std::string_view path) {
  return std::any_of(roots.begin(), roots.end(), [path](const std::string& root) {
    return root == "/" || (path != root && is_within(path, root));
  });
}

}  // namespace executor
