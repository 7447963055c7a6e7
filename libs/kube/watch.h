#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "libs/api/sandbox.h"
#include "libs/base/json.h"
#include "libs/base/result.h"

namespace kube {

struct WatchEvent {
  enum class Kind { kAdded, kModified, kDeleted, kBookmark, kError };
  Kind kind = Kind::kAdded;
  base::Json object;  // Of a bookmark: only its resourceVersion counts; of an error: a Status.
  bool operator==(const WatchEvent&) const = default;
};

inline constexpr std::size_t kWatchLineMax = 16u << 20;  // An object of etcd's limit is far below.

// The stream of a watch: one JSON document a line, in pieces of any size.
class WatchDecoder {
 public:
  // Hands every event that `bytes` completes to `take`; false: `take` has seen enough. kUnavailable
  // when the stream is no watch's: the decoder is of no more use.
  base::Result<bool> feed(std::string_view bytes, const std::function<bool(WatchEvent&&)>& take);
  // The stream broke off within an event.
  bool is_amid() const { return !line_.empty(); }

 private:
  std::string line_;
};

// This bookmark ends the initial events that were asked for.
bool ends_initial_events(const WatchEvent& event);

std::string resource_version_of(const base::Json& object);  // Empty: it has none.
// Key, UID and resourceVersion alone.
api::Metadata identity_of(const base::Json& object);
// True: `one` is older than `other`. Nothing when the two cannot be compared.
std::optional<bool> is_older(std::string_view one, std::string_view other);

}  // namespace kube
