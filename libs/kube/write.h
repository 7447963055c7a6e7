#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kube {

// What a request would change in the cluster, as an audit log calls it: pure.
struct Write {
  std::string verb;      // "create", "update", "patch", "delete", "deletecollection"
  std::string resource;  // "sandboxes", "sandboxes/status"
  bool operator==(const Write&) const = default;
};

// Nothing for what reads, and for questions that are asked by POST (reviews of tokens and access).
std::optional<Write> write_of(std::string_view method, std::string_view path);

}  // namespace kube
