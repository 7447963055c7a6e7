#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libs/kube/informer.h"

namespace cli {

// A collection of a cluster that a person is looking at, kept up to date in the background through
// cuts and restarts of the server.
class Follower {
 public:
  // Both outlive it.
  Follower(kube::Client& client, const base::Clock& clock, kube::Resource resource,
           kube::Scope scope);

  bool follows(const kube::Resource& resource, const kube::Scope& scope) const {
    return resource == resource_ && scope == scope_;
  }
  // Returns when there is something new since the last call, and after `most` in any case.
  void await_news(base::Milliseconds most);
  // The objects in the order of their keys; nothing before the first complete list.
  std::optional<std::vector<base::Json>> objects() const;
  // What went wrong last, and how often since it last worked; nothing while it works.
  struct Trouble {
    kube::Refusal refusal;
    int failures = 0;
  };
  std::optional<Trouble> trouble() const;

 private:
  struct Object {
    api::Metadata metadata;
    base::Json json;
  };

  void take(const kube::LegEnd& end);
  void tell();

  const kube::Resource resource_;
  const kube::Scope scope_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool news_ = false;
  std::optional<Trouble> trouble_;
  kube::Informer<Object> informer_;  // Last: its thread uses all of the above.
};

}  // namespace cli
