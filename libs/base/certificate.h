#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/result.h"

// X.509 certificates for servers of our own (RFC 5280), keys on P-256.
namespace base {

// Whether a server's name is an IPv4 or IPv6 address: certificates and TLS treat those apart.
bool is_ip_address(const std::string& name);
// The same server's name as certificates have it; nothing: neither a DNS name nor an IP address.
std::optional<std::string> as_server_name(const std::string& name);
// Whether it may be the name of a host: letters, digits, dots and hyphens, and none of the latter
// two at its begin.
bool is_host_name(std::string_view name);

// A certificate and its key, in PEM. The key is secret.
struct Certified {
  std::string certificate, key;
  bool operator==(const Certified&) const = default;
};

struct CertificateTerms {
  enum class Use { kServer, kClient };
  std::string common_name;
  // For whom: DNS names and IP addresses, told apart by their look. An authority has none.
  std::vector<std::string> names = {};
  WallTime not_before = {}, not_after = {};
  Use use = Use::kServer;  // Of what an authority issues.
};

// An authority that may issue certificates, and none for other authorities.
Result<Certified> make_authority(const CertificateTerms& terms);
// kInvalid: the authority is not one, or a name is none.
Result<Certified> issue(const Certified& authority, const CertificateTerms& terms);

struct CertificateFacts {
  std::string common_name;
  std::vector<std::string> names = {};  // As in the terms, sorted.
  WallTime not_before = {}, not_after = {};
};
// kInvalid: not a certificate in PEM, or `key` is not its key.
Result<CertificateFacts> facts_of(const Certified& certified);
// Of the first certificate in `pem` alone.
Result<CertificateFacts> facts_of_certificate(const std::string& pem);
// Whether `authority`'s key signed it; says nothing of time.
bool is_issued_by(const std::string& certificate, const std::string& authority);
// The certificates of a bundle, each in PEM of its own; what is none between them is left out.
std::vector<std::string> certificates_in(const std::string& bundle);

}  // namespace base
