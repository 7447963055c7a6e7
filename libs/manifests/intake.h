#pragma once

#include <string>
#include <vector>

#include "libs/manifests/disk.h"
#include "libs/manifests/record.h"
#include "libs/manifests/requests.h"

namespace manifests {

inline constexpr std::size_t kRequestsMax = 1000;  // Taken in one scan; the rest wait for the next.
inline constexpr std::size_t kResultsMax = 1000;   // Kept; the eldest go first.

// The controller's side of STATE/requests. A request stays until its result is written, so a crash
// has it taken again; it is pinned to a UID before it is acted upon, so the second time it finds
// either the same object or nothing to do.
class Intake {
 public:
  Intake(Layout layout, const Disk& disk) : layout_(std::move(layout)), disk_(disk) {}

  struct Pending {
    std::string id;
    base::Result<Request> request;
  };
  base::Result<std::vector<Pending>> pending() const;  // Eldest first.
  base::Result<base::Done> pin(const std::string& id, const Request& request) const;
  base::Result<base::Done> answer(const std::string& id, const RequestResult& result) const;

 private:
  base::Result<base::Done> prune_results() const;

  const Layout layout_;
  const Disk& disk_;
};

}  // namespace manifests
