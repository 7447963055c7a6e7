#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "libs/wire/frames/message.h"

namespace wire {

inline constexpr std::size_t kAcknowledgeAfter = 64;  // Replies; else at the next tick.

// Which numbers a client's session has given to what mutates, what of that was answered, and what
// of that the server was told: it keeps replies until then. Notices are acknowledged with them.
// Pure.
class Window {
 public:
  void begin_session();  // Another one, whose numbers begin at 1.
  void begin_link();     // What was said may not have arrived.

  std::int64_t next_number() { return ++last_; }
  // For one more, of so many that the server keeps at most.
  bool has_room(std::int64_t replies_max) const { return unacknowledged() < replies_max; }
  void answered(std::int64_t seq);
  bool hear(const Notice& notice);  // Whether it is the first time.

  // What goes with a request, which is about to be sent.
  std::optional<std::int64_t> kept();
  void hurry() { due_ = true; }  // What there is to be said is to be said next.
  std::optional<Ack> next_ack();

 private:
  std::int64_t unacknowledged() const;

  std::int64_t last_ = 0;
  std::int64_t through_ = 0;             // All up to here are answered,
  std::map<std::int64_t, bool> beyond_;  // and these; true: that was said.
  std::int64_t through_said_ = 0;
  std::int64_t notices_heard_ = 0, notices_said_ = 0;
  bool due_ = false;
};

}  // namespace wire
