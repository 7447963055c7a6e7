#include "libs/archives/path.h"

#include "libs/base/strings.h"

namespace archives {

Result<std::vector<std::string>> names_of(std::string_view path) {
  if (path.size() > kPathBytesMax) return too_large("the archive holds a path that is too long");
  if (path.starts_with('/')) return unfit("the archive holds an absolute path: ", path);
  std::vector<std::string> names;
  for (std::string& name : base::split(path, '/')) {
    if (name == "..") return unfit("the archive holds a path that goes back: ", path);
    if (name.size() > kNameBytesMax)
      return too_large("the archive holds a name that is too long: ", path);
    if (!name.empty() && name != ".") names.push_back(std::move(name));
  }
  if (names.size() > kDepthMax) return too_large("the archive is too deep: ", path);
  return names;
}

bool leads_out(const std::vector<std::string>& folder, std::string_view link) {
  if (link.starts_with('/')) return true;
  std::size_t depth = folder.size();
  for (const std::string& name : base::split(link, '/')) {
    if (name == ".." && depth == 0) return true;
    if (name == "..")
      --depth;
    else if (!name.empty() && name != ".")
      ++depth;
  }
  return false;
}

}  // namespace archives
