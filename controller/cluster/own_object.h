#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "libs/kube/client.h"

namespace controller {

// The names of a ConfigMap's or Secret's data, and their bytes.
using ObjectData = std::map<std::string, std::string>;

// What makes one of the other, as a merge patch has it: what is gone is null, what is as before is
// not there. Pure.
base::Json difference(const ObjectData& before, const ObjectData& after);

// One key of a Secret. kNotFound names what is missing, kDenied who may not read it.
base::Result<std::string> secret_value(kube::Client& client, const api::Key& secret,
                                       const std::string& key);

inline constexpr int kEditTriesMax = 8;

// A ConfigMap or Secret of the controller's own, made when it is first written. Several threads and
// several controllers may edit it: none of their edits is lost.
class OwnObject {
 public:
  OwnObject(kube::Client& client, const kube::Resource& resource, api::Key key)
      : client_(client), resource_(resource), key_(std::move(key)) {}

  // Nothing in it, where it is not there.
  base::Result<ObjectData> read(std::stop_token stop = {}) const;
  // `change` says whether there is anything to write; it is called again when somebody else wrote
  // or deleted it meanwhile. kConflict or kNotFound when that happened kEditTriesMax times.
  base::Result<base::Done> edit(const std::function<base::Result<bool>(ObjectData&)>& change,
                                std::stop_token stop = {}) const;

 private:
  struct Held {
    kube::Preconditions identity = {};  // Empty: it is not there.
    ObjectData data = {};
  };
  base::Result<Held> get(std::stop_token stop) const;
  kube::Answer<base::Done> put(const Held& before, const ObjectData& data,
                               std::stop_token stop) const;
  bool is_secret() const { return resource_ == kube::kSecrets; }

  kube::Client& client_;
  const kube::Resource& resource_;
  const api::Key key_;
};

}  // namespace controller
