#pragma once

#include <string>

#include "libs/base/json.h"

namespace cli {

// A value as block YAML, ended by a newline; any reader of YAML 1.1 or 1.2 gets the same value
// back.
std::string to_yaml(const base::Json& value);

}  // namespace cli
