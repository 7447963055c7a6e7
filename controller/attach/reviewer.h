#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "libs/base/result.h"
#include "libs/kube/client.h"

namespace controller {

// Who asks, as the API server knows them.
struct Caller {
  std::string name, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
  bool operator==(const Caller&) const = default;
};

// What the API server says of callers. kDenied: it said no, with the reason; kUnavailable: it did
// not say.
class Reviewer {
 public:
  virtual ~Reviewer() = default;
  virtual base::Result<Caller> identify(const std::string& token, std::stop_token stop) = 0;
  // May `caller` create sandboxes/attach for that Sandbox?
  virtual base::Result<base::Done> allow(const Caller& caller, const api::Key& sandbox,
                                         std::stop_token stop) = 0;
};

// By TokenReview (authentication.k8s.io/v1), its audience checked, and SubjectAccessReview
// (authorization.k8s.io/v1).
class ClusterReviewer final : public Reviewer {
 public:
  explicit ClusterReviewer(kube::Client& client) : client_(client) {}
  base::Result<Caller> identify(const std::string& token, std::stop_token stop) override;
  base::Result<base::Done> allow(const Caller& caller, const api::Key& sandbox,
                                 std::stop_token stop) override;

 private:
  kube::Client& client_;
};

}  // namespace controller
