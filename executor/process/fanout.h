#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "libs/aio/loop.h"
#include "libs/aio/task.h"
#include "libs/base/clock.h"

namespace executor {

enum class Channel { kStdout, kStderr, kTerminal };

struct Output {
  Channel channel;
  std::string bytes;
};

struct End {
  int exit_code = 0;  // -1 when a signal ended it.
  bool exited = false;
  std::string status;                // "exit status 3", "signal: killed".
  std::optional<std::string> error;  // The same, unless it exited with 0.
};
End describe_end(int wait_status);

using ProcessEvent = std::variant<Output, End>;

// Carries one process's output to all who subscribed. A slow one slows the process down. Where
// there are several, one that takes nothing for kPatience while another would go on is cut off, so
// that it does not stall the others. Without any, output is discarded.
class Fanout {
 public:
  static constexpr std::size_t kHeldBytesMax = 256u << 10;  // For each subscriber.
  static constexpr base::Milliseconds kPatience{1000};

  class Subscriber {
   public:
    explicit Subscriber(aio::Executor executor) : arrived_(executor), taken_(executor) {}
    ~Subscriber() { leave(); }

    // The next event; nothing after the end, or when it was cut off.
    aio::Task<std::optional<ProcessEvent>> next();
    bool cut_off() const { return cut_off_; }
    void leave();  // Take no more; the process need not wait for this one.

   private:
    friend class Fanout;
    bool has_room() const { return held_bytes_ < kHeldBytesMax; }
    void put(ProcessEvent event);

    std::deque<ProcessEvent> held_;
    std::size_t held_bytes_ = 0;
    bool ended_ = false, cut_off_ = false, left_ = false;
    std::optional<base::Moment> full_since_;
    aio::Condition arrived_;
    aio::Condition taken_;
    std::shared_ptr<aio::Condition> changed_;  // The fanout's.
  };

  explicit Fanout(aio::Executor executor);

  std::shared_ptr<Subscriber> subscribe();
  // Returns when all who listen have room for more.
  aio::Task<> publish(Output output);
  void finish(const End& end);  // Later subscribers get it too.
  const std::optional<End>& ended() const { return end_; }

 private:
  bool make_room(base::Moment now);

  aio::Executor executor_;
  std::list<std::weak_ptr<Subscriber>> subscribers_;
  std::shared_ptr<aio::Condition> changed_;
  std::optional<End> end_;
};

}  // namespace executor
