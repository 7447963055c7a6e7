#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "controller/attach/certificate_plan.h"
#include "libs/base/clock.h"
#include "libs/kube/client.h"

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

  // Looks, renews what is due, publishes the bundle. kUnavailable: the API server did not answer,
  // or others were always faster; kInvalid: what is kept cannot be used.
  base::Result<TlsMaterial> turn(std::stop_token stop);

 private:
  struct Kept {
    base::Json secret;
    std::optional<TlsMaterial> material;
  };
  base::Result<std::optional<Kept>> look(std::stop_token stop);
  // False: another replica was faster.
  base::Result<bool> put(const std::optional<Kept>& before, const TlsMaterial& material,
                         std::stop_token stop);
  base::Result<base::Done> publish(const std::string& bundle, std::stop_token stop);

  kube::Client& client_;
  const base::Clock& clock_;
  const KeeperSettings settings_;
};

}  // namespace controller
