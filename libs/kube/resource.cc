#include "libs/kube/resource.h"

#include "libs/base/strings.h"

namespace kube {

std::string api_version_of(const Resource& resource) {
  return resource.group.empty() ? resource.version : resource.group + "/" + resource.version;
}

std::string path_of_all(const Resource& resource, const std::string& space) {
  std::string path = (resource.group.empty() ? "/api/" : "/apis/") + api_version_of(resource);
  if (resource.namespaced && !space.empty()) path += "/namespaces/" + base::percent_encode(space);
  return path + "/" + resource.plural;
}

std::string path_of(const Resource& resource, const api::Key& key, std::string_view subresource) {
  std::string path = path_of_all(resource, key.space) + "/" + base::percent_encode(key.name);
  if (!subresource.empty()) path += "/" + std::string(subresource);
  return path;
}

}  // namespace kube
