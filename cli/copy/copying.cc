#include "cli/copy/copying.h"

#include <algorithm>
#include <cctype>

namespace cli {
namespace {

using base::ErrorCode;
using base::Result;

bool may_be_in_name(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) || byte == '-' || byte == '.' ||
         byte == '_';
}

// Without slashes at its end.
std::string trimmed(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

bool means_content(const std::string& path) {
  return path == "." || path == ".." || path == "/" || path.ends_with("/.") ||
         path.ends_with("/..");
}

}  // namespace

Side read_side(const std::string& word) {
  const std::size_t colon = word.find(':');
  const std::string name = word.substr(0, colon);
  const bool named = colon != std::string::npos && !name.empty() && !name.starts_with('.') &&
                     std::count(name.begin(), name.end(), '/') <= 1 && !name.starts_with('/') &&
                     !name.ends_with('/') && std::all_of(name.begin(), name.end(), [](char byte) {
                       return byte == '/' || may_be_in_name(byte);
                     });
  if (!named) return {.path = word};
  const std::string path = word.substr(colon + 1);
  return {.inside = true, .sandbox = name, .path = path.empty() ? "." : path};
}

Result<Copying> read_copying(const Options& options) {
  if (options.words.size() != 2)
    return base::error(ErrorCode::kInvalid,
                       "cp takes where from and where to, one of them as [NAMESPACE/]NAME:PATH");
  Copying what{read_side(options.words[0]), read_side(options.words[1])};
  if (what.from.inside == what.to.inside)
    return base::error(ErrorCode::kInvalid, "one side of cp is in a sandbox, [NAMESPACE/]NAME:PATH",
                       ", and the other on this machine");
  return what;
}

std::string arrival_of(const std::string& from, const std::string& to, bool to_is_folder) {
  std::string target = trimmed(to);
  const std::string source = trimmed(from);
  if (!to_is_folder || means_content(source)) return target;
  const std::string name = source.substr(source.rfind('/') + 1);
  return target == "/" ? "/" + name : target + "/" + name;
}

}  // namespace cli
