#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// What the verbs that reach into a sandbox tell alike.
namespace cli {

// That an output begins only there.
std::string dropped(std::int64_t bytes, std::string_view output);

// That nobody can tell how it ended.
std::string unknown(const std::string& why);

}  // namespace cli
