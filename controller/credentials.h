#pragma once

#include <map>
#include <string>
#include <vector>

#include "libs/api/resource_store.h"
#include "libs/base/result.h"

namespace controller {

// Where a provider's API key comes from: the Secret that it names, else a file, else the
// environment. Read again at each use, so that a rotated key works at once. kInvalid: there is
// something, and it cannot be a key.
class Credentials {
 public:
  // `files`: "[PROVIDER=]PATH" each. `environment`: the key found there, or empty.
  static base::Result<Credentials> read(const std::vector<std::string>& files,
                                        std::string environment);
  // Secrets are those of the namespace `space`.
  base::Result<std::string> api_key(api::ResourceStore& store, const std::string& space,
                                    const api::SandboxProvider& provider) const;

 private:
  std::map<std::string, std::string> files_;  // By provider; "" is for all others.
  std::string environment_;
};

}  // namespace controller
