#pragma once

#include <vector>

#include "libs/api/resource_store.h"

// What stores keep beside the objects, as every one of them writes it down.
namespace api {

inline constexpr std::size_t kReleasesMax = 1'000;  // Of one provider.

// A second release of one E2B sandbox takes the place of the first. kRateLimited: kReleasesMax are
// on record.
base::Result<base::Done> put_release(std::vector<ResourceStore::Release>& releases,
                                     const ResourceStore::Release& release);
// False: it was not on record.
bool drop_release(std::vector<ResourceStore::Release>& releases, const std::string& sandbox_id);

base::Json to_json(const std::vector<ResourceStore::Release>& releases);
// kInvalid: it is no list. What cannot be read of an entry is empty.
base::Result<std::vector<ResourceStore::Release>> releases_from_json(const base::Json& json);

base::Json to_json(const ResourceStore::WayIn& way);
ResourceStore::WayIn way_in_from_json(const base::Json& json);

}  // namespace api
