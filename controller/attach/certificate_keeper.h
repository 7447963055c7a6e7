#pragma once

#include <stop_token>
#include <string>

#include "controller/attach/certificate_plan.h"
#include "controller/cluster/own_object.h"
#include "libs/base/clock.h"

namespace controller {

struct KeeperSettings {
  std::string space;        // The controller's own namespace.
  std::string secret;       // tls.crt, tls.key, ca.crt; ours has the authority too.
  std::string authorities;  // The ConfigMap for all who dial: ca.crt.
  bool ours = true;         // Made and rotated by us; else only read.
  TlsTerms terms = {};
};

// Keeps the material of the attach service in one Secret, shared by all replicas, and its bundle in
// a ConfigMap. Whoever comes first makes or renews it; the others find theirs refused, and read.
class CertificateKeeper {
 public:
  CertificateKeeper(kube::Client& client, const base::Clock& clock, KeeperSettings settings);

  // Looks, renews what is due, publishes the bundle. kUnavailable: the API server did not answer;
  // kConflict: others were always faster; kInvalid: what is kept cannot be used.
  base::Result<TlsMaterial> turn(const std::stop_token& stop);

 private:
  base::Result<TlsMaterial> found(const std::stop_token& stop);
  base::Result<TlsMaterial> renewed(const std::stop_token& stop);
  base::Result<base::Done> publish(const std::string& bundle, const std::stop_token& stop);

  const base::Clock& clock_;
  const KeeperSettings settings_;
  const OwnObject secret_, authorities_;
};

}  // namespace controller
