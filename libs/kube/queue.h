#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>

#include "libs/api/sandbox.h"
#include "libs/base/clock.h"

namespace kube {

// What a worker says of a key it has finished with.
struct Requeue {
  std::optional<base::Milliseconds> after = {};  // Look again then; not a failure.
  bool failed = false;                           // Look again after the key's own growing delay.
  bool operator==(const Requeue&) const = default;
};

struct QueueOptions {
  base::Milliseconds backoff_min{5};
  base::Milliseconds backoff_max{60'000};
};

struct QueueStats {
  std::size_t depth = 0;              // Ready to be taken.
  std::size_t in_work = 0;            // Taken, not yet done.
  std::size_t delayed = 0;            // Waiting for their time.
  std::uint64_t adds = 0;             // Keys that became ready.
  std::uint64_t retries = 0;          // Keys that came back as failed.
  base::Milliseconds oldest_work{0};  // How long the longest worker has been at it.
  base::Milliseconds all_work{0};     // The same of all workers together.
};

// The keys that want a look, each at most once: a key added again while it waits is one look, and
// one added while a worker has it is held back until that worker is done. A failed key returns
// after a delay that doubles up to backoff_max; any other end resets it. Its bound is the number
// of objects, as each key is held once.
class Queue {
 public:
  explicit Queue(const base::Clock& clock, QueueOptions options = {});

  void add(const api::Key& key);
  // The earliest of several delays counts.
  void add_after(const api::Key& key, base::Milliseconds delay);

  // Blocks until a key is ready; nothing once `stop` is asked for.
  std::optional<api::Key> next(std::stop_token stop);
  // The same without waiting.
  std::optional<api::Key> try_next();
  // Called by whoever took it, who then comes for the next one.
  void done(const api::Key& key, const Requeue& requeue);

  // When the earliest delayed key becomes ready; nothing when none is delayed.
  std::optional<base::Moment> next_due() const;
  QueueStats stats() const;
  // How long the key last taken had been ready: for the metric of that name.
  base::Milliseconds waited(const api::Key& key) const;

 private:
  bool add_ready(const api::Key& key);
  void wake_one();
  void delay(const api::Key& key, base::Moment due);
  void undelay(const api::Key& key);
  void promote_due();
  std::optional<api::Key> take();

  const base::Clock& clock_;
  const QueueOptions options_;
  mutable std::mutex mutex_;
  // Of the workers without a key one keeps watch over the delayed ones; the others sleep until
  // there is a key for them, or until the watch is theirs.
  bool watched_ = false;
  std::size_t asleep_ = 0;
  std::condition_variable_any called_;                  // The sleepers.
  std::condition_variable_any watch_ends_;              // The one on watch.
  std::map<std::uint64_t, api::Key> ready_;             // In the order of their coming.
  std::map<api::Key, base::Moment> waiting_;            // The same keys, and since when.
  std::map<api::Key, base::Moment> in_work_;            // Since when.
  std::map<api::Key, base::Milliseconds> taken_after_;  // Of those in work.
  std::set<api::Key> again_;                            // Added while in work.
  std::map<api::Key, base::Moment> due_;  // Of the delayed ones: most keys, most of the time.
  std::set<std::pair<base::Moment, const api::Key*>> delayed_;  // The same, by their time.
  std::map<api::Key, int> failures_;
  std::uint64_t order_ = 0, adds_ = 0, retries_ = 0;
};

}  // namespace kube
