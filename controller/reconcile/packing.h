#pragma once

#include <string>
#include <string_view>

#include "controller/reconcile/observation.h"

namespace controller {

// A Memory as few bytes, for there is one of each Sandbox, and most of its fields are empty most of
// the time. For this process alone: another version may have other fields.
std::string pack(const Memory& memory);
Memory unpack(std::string_view packed);  // What pack() gave.

}  // namespace controller
