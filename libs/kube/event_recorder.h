#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "libs/kube/client.h"
#include "libs/kube/event_book.h"

namespace kube {

inline constexpr std::size_t kEventQueueMax = 1'000;
inline constexpr int kEventTriesMax = 12;

struct EventStats {
  std::uint64_t written = 0;
  std::uint64_t suppressed = 0;  // Too many of one object, or of all.
  std::uint64_t dropped = 0;     // The queue was full, or the server would not take it.
};

// Writes events.k8s.io/v1 events from a thread of its own: repeats as series, floods bounded. An
// event is news for people; nothing waits for it, and nothing depends on it.
class EventRecorder {
 public:
  // Both outlive it.
  EventRecorder(Client& client, const base::Clock& clock, EventSettings settings);
  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  // Never blocks.
  void record(const Regarding& regarding, const api::Event& event);
  EventStats stats() const;

 private:
  void run(const std::stop_token& stop);
  std::optional<EventWrite> next(const std::stop_token& stop);
  void write(const EventWrite& write, const std::stop_token& stop);
  void push(EventWrite write);

  Client& client_;
  const base::Clock& clock_;
  const base::Milliseconds look_every_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  EventBook book_;
  std::deque<EventWrite> queue_;
  EventStats stats_;
  bool refused_ = false;  // The last one; and that was told.
  std::jthread thread_;
};

}  // namespace kube
