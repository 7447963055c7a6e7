#include "libs/net/cpprest/proxy.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "libs/base/strings.h"

namespace net {
namespace {

// An IPv4 or IPv6 address in network order.
struct Address {
  std::array<unsigned char, 16> bytes{};
  int bits = 0;  // 32 or 128.
};

std::optional<Address> address_in(const std::string& text) {
  Address found;
  if (inet_pton(AF_INET, text.c_str(), found.bytes.data()) == 1) {
    found.bits = 32;
    return found;
  }
  if (inet_pton(AF_INET6, text.c_str(), found.bytes.data()) == 1) {
    found.bits = 128;
    return found;
  }
  return std::nullopt;
}

bool has_prefix(const Address& address, const Address& network, std::int64_t bits) {
  if (address.bits != network.bits || bits < 0 || bits > network.bits) return false;
  const auto bit_at = [](const Address& from, std::int64_t at) {
    return (from.bytes[std::size_t(at / 8)] >> (7 - at % 8)) & 1;
  };
  for (std::int64_t at = 0; at < bits; ++at)
    if (bit_at(address, at) != bit_at(network, at)) return false;
  return true;
}

bool is_in(const Address& address, const std::string& network) {
  const std::size_t slash = network.find('/');
  const auto base = address_in(network.substr(0, slash));
  if (!base) return false;
  const auto bits = slash == std::string::npos ? std::optional<std::int64_t>(base->bits)
                                               : base::parse_integer(network.substr(slash + 1));
  return bits && has_prefix(address, *base, *bits);
}

std::string_view without_dot(std::string_view name) {
  return name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
}

bool is_name_or_suffix(std::string_view host, std::string_view pattern) {
  if (pattern.starts_with('.')) pattern.remove_prefix(1);
  pattern = without_dot(pattern);
  if (pattern.empty() || !host.ends_with(pattern)) return false;
  return host.size() == pattern.size() || host[host.size() - pattern.size() - 1] == '.';
}

}  // namespace

bool is_exempt(std::string_view no_proxy, std::string_view host) {
  if (base::trim(no_proxy) == "*") return true;
  const std::string name = base::lower(without_dot(host));
  const auto address = address_in(name);
  std::string list = base::lower(no_proxy);
  std::replace(list.begin(), list.end(), ' ', ',');
  for (const std::string& each : base::split(list, ',')) {
    if (each.empty()) continue;
    if (address ? is_in(*address, each) : is_name_or_suffix(name, each)) return true;
  }
  return false;
}

std::string proxy_from(const Environment& environment, std::string_view scheme,
                       std::string_view host) {
  const auto first_of = [&](std::initializer_list<const char*> names) {
    for (const char* name : names)
      if (const auto value = environment(name); value && !value->empty()) return *value;
    return std::string();
  };
  if (is_exempt(first_of({"no_proxy", "NO_PROXY"}), host)) return {};
  // HTTP_PROXY is not read: to a CGI program it is a header that its client chose.
  return scheme == "https" ? first_of({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
                           : first_of({"http_proxy", "all_proxy", "ALL_PROXY"});
}

}  // namespace net
