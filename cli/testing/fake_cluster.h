#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>

#include "libs/kube/testing/fake_server.h"

namespace cli {

// An API server in memory, as far as the verbs see one: get, list with the field selectors that
// they use, merge, apply and delete under preconditions; it judges and defaults by the CRDs.
// Nothing to watch.
class FakeCluster {
 public:
  FakeCluster();

  kube::FakeServer& server() { return server_; }
  base::FakeClock& clock() { return server_.clock(); }

  void add_space(const std::string& space) { spaces_.insert(space); }
  // Declares a Sandbox as somebody else would; metadata that a server writes is added.
  void put(const kube::Resource& resource, base::Json object);
  // Nothing: there is none.
  base::Json find(const kube::Resource& resource, const api::Key& key) const;
  // As a controller writes it, past every rule.
  void write(const kube::Resource& resource, const base::Json& object);
  void drop(const kube::Resource& resource, const api::Key& key);
  // Answers all requests that have `part` in "METHOD url" with `answer` from now on.
  void refuse(const std::string& part, net::Answer answer) { refusals_[part] = std::move(answer); }

 private:
  struct Target {
    kube::Resource resource;
    api::Key key;  // Without a name: all of them.
  };
  using Query = std::map<std::string, std::string>;

  net::Answer answer(const net::Request& request);
  net::Answer list(const Target& target, const Query& query) const;
  net::Answer change(const Target& target, const net::Request& request, const Query& query);
  net::Answer remove(const Target& target, const net::Request& request);
  net::Answer keep(const Target& target, base::Json object, const Query& query);

  mutable std::recursive_mutex mutex_;
  std::map<std::string, base::Json> objects_;  // By path.
  std::set<std::string> spaces_ = {"default"};
  std::map<std::string, net::Answer> refusals_;
  int version_ = 100;
  kube::FakeServer server_;
};

// A Status as the API server prints it.
net::Answer status_answer(int number, const std::string& reason, const std::string& message,
                          base::Json causes = base::Json::array());

}  // namespace cli
