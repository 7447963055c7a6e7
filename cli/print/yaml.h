#pragma once

#include <string>

#include "libs/base/json.h"

namespace cli {

// A value as block YAML, ended by a newline; readers of YAML 1.1 and 1.2 get the same value back.
std::string to_yaml(const base::Json& value);

}  // namespace cli
