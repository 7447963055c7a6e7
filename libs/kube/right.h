#pragma once

#include <string>

#include "libs/kube/client.h"

namespace kube {

// One thing that somebody may do in a cluster, or may not.
struct Right {
  std::string verb;
  std::string group, resource;  // "sandfleet.dev", "sandboxes"; the core group is empty.
  std::string subresource = {};
  std::string space = {};  // Empty: in every namespace, or of a kind that belongs to none.
  std::string name = {};   // Empty: of any name.
  bool operator==(const Right&) const = default;
};

std::string to_text(
    const Right& right);                // "patch sandboxes.sandfleet.dev/status in namespace team"
std::string can_i(const Right& right);  // How to see whether one has it: "kubectl auth can-i ..."

// Whether we have it, as the API server says; everybody may ask that of himself.
Answer<bool> may(Client& client, const Right& right, std::stop_token stop);

}  // namespace kube
