#pragma once

#include <list>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "libs/api/resource_store.h"
#include "libs/base/clock.h"
#include "libs/base/token_bucket.h"
#include "libs/kube/resource.h"

// What of many events is written to the API server, and when: pure.
namespace kube {

struct Regarding {
  Resource resource;
  api::Key key;
  std::string uid;
};

struct EventSettings {
  std::string controller = "sandfleet.dev/controller";
  std::string instance = {};  // Which of its processes: the pod's name.
  // A repeat within this time belongs to the series of the one before.
  base::Milliseconds series_gap{360'000};
  base::Milliseconds refresh{60'000};  // A series that goes on is written again no sooner.
  base::Rate each{25, base::Milliseconds(300'000)};  // Of one object.
  base::Rate all{200, base::Milliseconds(100)};      // Of all of them together.
};

inline constexpr std::size_t kEventsKept = 4'096;     // Series that we remember.
inline constexpr std::size_t kRegardingKept = 4'096;  // Objects whose rate we remember.

// One write.
struct EventWrite {
  api::Key key;  // Of the Event object.
  bool create = true;
  base::Json body;  // The object, or a merge patch of its series.
  bool operator==(const EventWrite&) const = default;
};

class EventBook {
 public:
  explicit EventBook(EventSettings settings)
      : settings_(std::move(settings)), each_(settings_.each, kRegardingKept) {}

  // Nothing: it is counted in its series, or its object has had too many.
  std::optional<EventWrite> record(const Regarding& regarding, const api::Event& event,
                                   base::Moment now, base::WallTime wall);
  // Series that have grown since they were last written.
  std::vector<EventWrite> due(base::Moment now);
  // The server has it no more: what comes next is an event of its own.
  void forget(const api::Key& event);
  std::uint64_t suppressed() const { return suppressed_; }

 private:
  using Same = std::tuple<std::string, std::string, std::string, std::string, std::string>;
  struct Series {
    Same same;
    api::Key key;
    std::int64_t count = 1, written_count = 1;
    base::WallTime last_wall;
    base::Moment last, written;
  };
  using Place = std::list<Series>::iterator;
  struct BySame {
    using is_transparent = void;
    bool operator()(Place one, Place other) const { return one->same < other->same; }
    bool operator()(Place one, const Same& other) const { return one->same < other; }
    bool operator()(const Same& one, Place other) const { return one < other->same; }
  };
  bool may_write(const Regarding& regarding, base::Moment now);
  EventWrite write_series(Series& series, base::Moment now) const;

  const EventSettings settings_;
  std::list<Series> series_;  // By last occurrence, eldest first.
  std::set<Place, BySame> known_;
  base::TokenBuckets each_;  // By UID.
  std::optional<base::TokenBucket> all_;
  std::uint64_t suppressed_ = 0;
};

}  // namespace kube
