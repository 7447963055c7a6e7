#pragma once

#include <string>
#include <vector>

#include "libs/wire/frames/search_operations.h"

// What ripgrep is told, after its own name. `where` is what is searched, by the folder that it runs
// in. It reads no configuration and starts no other program, whatever the request says.
namespace executor {

std::vector<std::string> arguments_of(const wire::GlobArgs& request, const std::string& where);
std::vector<std::string> arguments_of(const wire::GrepArgs& request, const std::string& where);

}  // namespace executor
