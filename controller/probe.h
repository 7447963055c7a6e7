#pragma once

#include <string>

#include "libs/base/result.h"
#include "libs/net/transport.h"

namespace controller {

// What a controller's /healthz or /readyz answers: its words when it answers 200, else why that is
// trouble. For machines that have no other program to ask with, such as `helm test`.
base::Result<std::string> probe(net::Transport& transport, const std::string& url);

}  // namespace controller
