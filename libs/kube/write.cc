#include "libs/kube/write.h"

#include <vector>

#include "libs/base/strings.h"

namespace kube {
namespace {

// What follows the version in "/api/v1/..." and "/apis/GROUP/VERSION/..."; empty for other paths.
std::vector<std::string> after_version(const std::vector<std::string>& parts) {
  const std::size_t version = parts.size() > 1 && parts[1] == "api" ? 2 : 3;
  const bool served = parts.size() > version && (version == 2 || parts[1] == "apis");
  if (!served) return {};
  return {parts.begin() + static_cast<std::ptrdiff_t>(version) + 1, parts.end()};
}

std::string verb_of(std::string_view method, bool of_one) {
  if (method == "POST") return "create";
  if (method == "PUT") return "update";
  if (method == "PATCH") return "patch";
  if (method == "DELETE") return of_one ? "delete" : "deletecollection";
  return {};
}

}  // namespace

std::optional<Write> write_of(std::string_view method, std::string_view path) {
  auto parts = after_version(base::split(path.substr(0, path.find('?')), '/'));
  // A namespace is where an object is, unless it is the object.
  if (parts.size() > 2 && parts[0] == "namespaces") parts.erase(parts.begin(), parts.begin() + 2);
  if (parts.empty() || parts[0].ends_with("reviews")) return std::nullopt;
  const bool of_one = parts.size() > 1;
  Write write{verb_of(method, of_one), parts[0] + (parts.size() > 2 ? "/" + parts[2] : "")};
  return write.verb.empty() ? std::nullopt : std::optional(std::move(write));
}

}  // namespace kube
