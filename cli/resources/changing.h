#pragma once

#include <string>

#include "cli/resources/call.h"
#include "libs/api/sandbox.h"

// The verbs that ask for something, and with --wait wait until it is so. Each gives its exit code.
namespace cli {

int set_state(const Call& call, const std::string& verb, api::DesiredState state);
int request_look(const Call& call);
int remove(const Call& call);
int apply(const Call& call);

}  // namespace cli
