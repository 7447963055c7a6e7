#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "agentd/dial/names.h"
#include "libs/aio/stream.h"
#include "libs/aio/tls/tls.h"
#include "libs/base/result.h"

namespace agentd {

// Where a URL leads.
struct Place {
  bool tls = false;
  std::string host;  // An IPv6 address without its brackets.
  int port = 0;
  std::string path;  // Without a slash at its end.

  std::string authority() const;  // For the field Host.
  bool operator==(const Place&) const = default;
};
// kInvalid: no http or https URL of a host.
base::Result<Place> place_of(std::string_view url);

// A connection to there; the look-up of the name may take so long, and each of its first few
// addresses, which are tried in turn. kUnavailable: nobody answered.
aio::Task<base::Result<std::shared_ptr<aio::Stream>>> dial(Place place, Names& names,
                                                           base::Milliseconds within);

// Connections to URLs of both kinds, with TLS where the URL says so.
class Dialler {
 public:
  // `names` outlives it.
  Dialler(Names& names, aio::TlsClient tls) : names_(names), tls_(std::move(tls)) {}

  aio::Task<base::Result<std::shared_ptr<aio::Stream>>> dial(Place place,
                                                             base::Milliseconds within) const;

 private:
  Names& names_;
  const aio::TlsClient tls_;
};

}  // namespace agentd
