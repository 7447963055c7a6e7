#pragma once

#include <string>

#include "libs/base/result.h"
#include "libs/kube/client.h"

namespace cli {

// A token of the ServiceAccount `space`/`account` that is good for attaching and nothing else: the
// API server itself takes none of that audience. Needs the right to create serviceaccounts/token.
base::Result<std::string> request_attach_token(kube::Client& client, const std::string& space,
                                               const std::string& account);

}  // namespace cli
