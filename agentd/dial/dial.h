#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "libs/aio/background.h"
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

// A connection to there; names are looked up in the background, and the first few addresses of one
// are tried in turn, each for so long. kUnavailable: nobody answered.
aio::Task<base::Result<std::shared_ptr<aio::Stream>>> dial(Place place, aio::Background& background,
                                                           base::Milliseconds within);

// Connections to URLs of both kinds, with TLS where the URL says so.
class Dialler {
 public:
  // `background` outlives it.
  Dialler(aio::Background& background, aio::TlsClient tls)
      : background_(background), tls_(std::move(tls)) {}

  aio::Task<base::Result<std::shared_ptr<aio::Stream>>> dial(Place place,
                                                             base::Milliseconds within) const;

 private:
  aio::Background& background_;
  const aio::TlsClient tls_;
};

}  // namespace agentd
