#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace net {

using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The proxy that the environment names for a host, read as libcurl does; empty: none.
std::string proxy_from(const Environment& environment, std::string_view scheme,
                       std::string_view host);

// Whether a no_proxy list has the host: "*", a name or its suffix, an address, a network in CIDR
// form; separated by commas and blanks.
bool is_exempt(std::string_view no_proxy, std::string_view host);

}  // namespace net
