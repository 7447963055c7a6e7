#include "agentd/dial/names.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "libs/base/certificate.h"

namespace agentd {
namespace {

constexpr std::size_t kAddressesMax = 4;  // That are tried of one name.

base::Error failed_to_find(const std::string& host, std::string_view why) {
  return base::error(base::ErrorCode::kUnavailable, "cannot look up ", host, ": ", why);
}

// Without asking anybody: what is an address, and what means this machine (RFC 6761 §6.3).
std::string known_address(const std::string& host) {
  if (base::is_ip_address(host)) return host;
  return host == "localhost" || host.ends_with(".localhost") ? "127.0.0.1" : "";
}

}  // namespace

base::Result<Addresses> look_up(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_ADDRCONFIG;  // Of the families that this machine has.
  hints.ai_socktype = SOCK_STREAM;
  if (const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &found); failed != 0)
    return failed_to_find(host, ::gai_strerror(failed));
  Addresses addresses;
  for (const addrinfo* one = found; one && addresses.size() < kAddressesMax; one = one->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0)
      addresses.emplace_back(text.data());
  }
  ::freeaddrinfo(found);
  return addresses;
}

Names::Domain::Domain(const aio::Executor& executor, const LookUp& how)
    : under_way(executor, kLookUpsMax, [this, how](std::string host) {
        return background.run([how, host = std::move(host)] { return how(host); });
      }) {}

Names::Names(aio::Executor executor, LookUp how)
    : executor_(std::move(executor)), how_([this, how = std::move(how)](const std::string& host) {
        return ending_ ? failed_to_find(host, "nobody waits for it any more") : how(host);
      }) {}

Names::~Names() { ending_ = true; }

// Nothing: in too many are names looked up. One where none is, and nobody is about to ask, makes
// room.
Names::Domain* Names::domain_of(const std::string& host) {
  const std::string name = host.substr(std::min(host.find('.'), host.size()));
  const auto known = domains_.find(name);
  if (known != domains_.end()) return &known->second;
  if (domains_.size() >= kDomainsMax)
    std::erase_if(domains_, [](const auto& one) {
      return one.second.wanted.use_count() == 1 && one.second.under_way.idle();
    });
  if (domains_.size() >= kDomainsMax) return nullptr;
  return &domains_.try_emplace(name, executor_, how_).first->second;
}

aio::Task<base::Result<Addresses>> Names::find(std::string host, base::Milliseconds within) {
  if (const std::string known = known_address(host); !known.empty()) co_return Addresses{known};
  const std::string_view too_many = "too many names are looked up just now";
  Domain* const domain = domain_of(host);
  if (!domain) co_return failed_to_find(host, too_many);
  const auto wanted = domain->wanted;
  auto found = co_await aio::within(domain->under_way.get(host), within);
  if (!found) co_return failed_to_find(host, "no answer came in time");
  if (!*found) co_return failed_to_find(host, too_many);
  co_return **std::move(found);
}

}  // namespace agentd
