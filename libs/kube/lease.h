#pragma once

#include <optional>
#include <string>

#include "libs/base/clock.h"
#include "libs/kube/client.h"

namespace kube {

// A Lease object as far as an election goes.
struct LeaseRecord {
  std::string holder = {};  // Empty: nobody's.
  base::Seconds duration{15};
  std::optional<base::WallTime> acquired = {}, renewed = {};
  std::int64_t transitions = 0;
  std::string resource_version = {};  // Empty: the object is not there yet.
  bool operator==(const LeaseRecord&) const = default;
};

// Where a lease is kept.
class LeaseStore {
 public:
  virtual ~LeaseStore() = default;
  // Nothing: there is none yet.
  virtual Answer<std::optional<LeaseRecord>> get(std::stop_token stop) = 0;
  // Creates it, or replaces that version of it; kConflict when it is another by now.
  virtual Answer<LeaseRecord> put(const LeaseRecord& record, std::stop_token stop) = 0;
};

// In a coordination.k8s.io/v1 Lease. Its client's timeout is well below the lease's duration.
class LeaseObject final : public LeaseStore {
 public:
  LeaseObject(Client& client, api::Key key) : client_(client), key_(std::move(key)) {}
  Answer<std::optional<LeaseRecord>> get(std::stop_token stop) override;
  Answer<LeaseRecord> put(const LeaseRecord& record, std::stop_token stop) override;

 private:
  Client& client_;
  const api::Key key_;
};

LeaseRecord lease_from_json(const base::Json& object);

}  // namespace kube
