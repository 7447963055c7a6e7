#pragma once

#include "cli/resources/call.h"

// The verbs that show what there is, and with --watch what comes. Each gives its exit code.
namespace cli {

int get(const Call& call);
int show(const Call& call);
int events(const Call& call);

}  // namespace cli
