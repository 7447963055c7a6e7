#pragma once

#include <optional>
#include <string>
#include <vector>

#include "libs/base/certificate.h"

namespace controller {

// What the attach service's HTTPS stands on, as it is kept in a Secret.
struct TlsMaterial {
  // Issues our certificates; empty where they are somebody else's (cert-manager's).
  base::Certified authority = {};
  std::string bundle = {};  // What clients are to believe: the authority, and those before it.
  base::Certified serving = {};
  bool operator==(const TlsMaterial&) const = default;
};

struct TlsTerms {
  std::vector<std::string> names;  // Of the service, as clients dial it; sorted.
  base::Seconds authority_life = std::chrono::hours(24 * 3'650);
  base::Seconds serving_life = std::chrono::hours(24 * 90);
};

// What the material becomes next; nothing: it is good as it is. Pure but for the new keys.
//
// Everything is renewed once two thirds of its life are over. One thing at a time: a new authority
// first stands in the bundle beside the old one, and signs only when the serving certificate is
// next due, so that clients have had time to read it.
base::Result<std::optional<TlsMaterial>> next_material(const std::optional<TlsMaterial>& present,
                                                       const TlsTerms& terms, base::WallTime now);

// Whether a server can be started on it now; says what is wrong.
base::Result<base::Done> is_usable(const TlsMaterial& material, base::WallTime now);

}  // namespace controller
