#include "executor/files/path.h"

namespace executor {

std::string clean_path(const std::filesystem::path& path) {
  std::string text = path.lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

bool is_within(std::string_view path, std::string_view folder) {
  if (folder == "/") return path.starts_with('/');
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

base::Result<std::string> resolve_path(std::string_view path, const User& user,
                                       std::string_view default_workdir) {
  if (path.find('\0') != std::string_view::npos)
    return base::error(base::ErrorCode::kInvalid, "a path has a zero byte in it");
  const std::filesystem::path home(user.home.empty() ? "/" : user.home);
  if (path.empty()) return clean_path(default_workdir.empty() ? home : home / default_workdir);
  if (path.front() == '/') return clean_path(path);
  if (path == "~") return clean_path(home);
  if (path.starts_with("~/")) return clean_path(home / path.substr(2));
  if (path.front() == '~')
    return base::error(base::ErrorCode::kInvalid, "'", path,
                       "': only ~ and ~/... stand for a home, not another user's");
  return clean_path(home / path);
}

}  // namespace executor
