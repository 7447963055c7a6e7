#pragma once

#include <optional>
#include <string_view>

#include "libs/base/clock.h"

namespace agentd {

// When a harness's token ends by its own word, if it is a JWT that says so (RFC 7519 §4.1.4). Only
// a hint when to bring the next one: whether it is good is for the attach service to say.
std::optional<base::WallTime> end_of_token(std::string_view token);

}  // namespace agentd
