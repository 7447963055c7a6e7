#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "controller/cluster/own_object.h"
#include "libs/api/records.h"

namespace controller {

inline constexpr int kWaysInSecrets = 256;                // Tokens are spread over so many Secrets.
inline constexpr std::size_t kWaysInOfSecretMax = 2'000;  // In one of them, below etcd's 1 MiB.

// What the controller keeps in its own namespace beside the objects: the fleet's key, the release
// records, and the ways into sandboxes that their provider tells only once. Names begin with the
// release's, so that several installations may share a namespace.
class Keepsakes {
 public:
  using Release = api::ResourceStore::Release;
  using WayIn = api::ResourceStore::WayIn;
  // Whether a Sandbox has that UID, as far as is known.
  using Living = std::function<bool(const std::string& uid)>;

  Keepsakes(kube::Client& client, std::string space, std::string release)
      : client_(client), space_(std::move(space)), release_(std::move(release)) {}

  // Of two controllers that make it at the same time, both get the one that was kept.
  base::Result<std::string> fleet_key();

  base::Result<base::Done> add_release(const Release& release);
  base::Result<std::vector<Release>> releases(const std::string& provider) const;
  base::Result<base::Done> remove_release(const std::string& provider,
                                          const std::string& sandbox_id);

  // Forgets those of nobody living when there is no room. kRateLimited: that made none.
  base::Result<base::Done> keep_way_in(const std::string& uid, const WayIn& way,
                                       const Living& is_living);
  base::Result<std::optional<WayIn>> way_in(const std::string& uid) const;
  base::Result<base::Done> forget_way_in(const std::string& uid);

 private:
  OwnObject secret(const std::string& what) const;
  OwnObject release_record(const std::string& provider) const;
  // kInvalid: what is there cannot be read, and must not be taken for nothing.
  base::Result<std::vector<Release>> releases_in(const ObjectData& data,
                                                 const std::string& provider) const;
  OwnObject ways_in_beside(const std::string& uid) const;

  kube::Client& client_;
  const std::string space_, release_;
  std::mutex mutex_;
  std::string fleet_key_;
};

}  // namespace controller
