#include "controller/attach/certificate_plan.h"

#include <algorithm>

namespace controller {
namespace {

using base::Certified;
using base::WallTime;

// Clocks of clients may lag.
constexpr base::Seconds kBackdated = std::chrono::minutes(10);
constexpr std::size_t kAuthoritiesMax = 4;  // In a bundle.

bool is_due(const base::CertificateFacts& facts, WallTime now) {
  return now >= facts.not_before + (facts.not_after - facts.not_before) * 2 / 3;
}

base::Result<Certified> new_authority(const TlsTerms& terms, WallTime now) {
  return base::make_authority(
      {"sandfleet attach authority", {}, now - kBackdated, now + terms.authority_life});
}

// An authority of ours lives longer than what it signs.
base::Result<Certified> new_serving(const Certified& authority, const TlsTerms& terms,
                                    WallTime now) {
  TRY(const auto facts, base::facts_of(authority));
  return base::issue(authority, {"sandfleet-attach", terms.names, now - kBackdated,
                                 std::min(now + terms.serving_life, facts.not_after)});
}

// The newest first; without those that are over.
std::string bundle_of(const Certified& newest, const std::string& before, WallTime now) {
  std::string bundle = newest.certificate;
  std::size_t count = 1;
  for (const std::string& each : base::certificates_in(before)) {
    const auto facts = base::facts_of_certificate(each);
    if (!facts || facts->not_after <= now || each == newest.certificate) continue;
    if (++count > kAuthoritiesMax) break;
    bundle += each;
  }
  return bundle;
}

// Of the serving certificate, or of the last of those that follow it, each the issuer of the one
// before.
bool vouches_for(const std::string& bundle, const std::string& chain) {
  const auto authorities = base::certificates_in(bundle);
  std::string issued;
  for (const std::string& link : base::certificates_in(chain)) {
    if (!issued.empty() && !base::is_issued_by(issued, link)) return false;
    issued = link;
    if (std::any_of(authorities.begin(), authorities.end(), [&](const std::string& authority) {
          return base::is_issued_by(issued, authority);
        }))
      return true;
  }
  return false;
}

bool serving_is_due(const TlsMaterial& material, const TlsTerms& terms, WallTime now) {
  const auto facts = base::facts_of(material.serving);
  return !facts || is_due(*facts, now) || facts->names != terms.names ||
         !vouches_for(material.bundle, material.serving.certificate);
}

base::Result<std::optional<TlsMaterial>> made_anew(const TlsTerms& terms, const std::string& before,
                                                   WallTime now) {
  TlsMaterial made;
  TRY(made.authority, new_authority(terms, now));
  made.bundle = bundle_of(made.authority, before, now);
  TRY(made.serving, new_serving(made.authority, terms, now));
  return std::optional(std::move(made));
}

}  // namespace

base::Result<std::optional<TlsMaterial>> next_material(const std::optional<TlsMaterial>& present,
                                                       const TlsTerms& terms, WallTime now) {
  if (!present) return made_anew(terms, {}, now);
  const auto authority = base::facts_of(present->authority);
  if (!authority || authority->not_after <= now) return made_anew(terms, present->bundle, now);
  TlsMaterial next = *present;
  next.bundle = bundle_of(present->authority, present->bundle, now);
  if (is_due(*authority, now)) {
    TRY(next.authority, new_authority(terms, now));
    next.bundle = bundle_of(next.authority, next.bundle, now);
  } else if (serving_is_due(next, terms, now)) {
    TRY(next.serving, new_serving(next.authority, terms, now));
  }
  return next == *present ? std::nullopt : std::optional(std::move(next));
}

base::Result<base::Done> is_usable(const TlsMaterial& material, WallTime now) {
  TRY(const auto facts, base::facts_of(material.serving));
  if (facts.not_before > now || facts.not_after <= now)
    return base::error(base::ErrorCode::kInvalid, "the serving certificate is not valid now");
  if (!vouches_for(material.bundle, material.serving.certificate))
    return base::error(base::ErrorCode::kInvalid,
                       "no authority in ca.crt has issued the serving certificate in tls.crt");
  return base::Done{};
}

}  // namespace controller
