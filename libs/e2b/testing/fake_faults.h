#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "libs/e2b/cloud.h"

namespace e2b {

enum class Operation { kCreate, kGet, kHandle, kList, kKill, kPause, kConnect, kExtend };
std::string_view to_word(Operation operation);

// One way in which a call goes wrong.
struct Fault {
  enum class Kind {
    kNotSent,      // No byte went out; nothing happens.
    kRefused503,   // A create: for want of capacity, definite. A pause: refused, still running.
    kFailed500,    // Nothing happens. A create cannot know that.
    kRateLimited,  // 429 with a Retry-After of one second.
    kReplyLost,    // It happens; the caller hears nothing.
    kLate,         // The caller hears nothing; it happens `late` afterwards.
    kFalseAbsent,  // Get, handle, kill, pause, connect, extend: 404 although it is there. List:
                   // empty.
    kRolledBack,   // Pause: 500, the run is lost; the older snapshot is left, or nothing.
    kKept,         // Kill, pause, connect: a success, and it stays as it was.
    kWrongFilter,  // List: the provider ignores the filter.
  };
  Kind kind;
  base::Milliseconds late{0};
};

// What a caller hears of a fault that its operation does not suffer in a way of its own.
base::Error failure_of(Fault::Kind kind);
CreateFailure create_failure_of(Fault::Kind kind);

// Which calls go wrong: those that a test scripted, in order, then by chance.
class FakeFaults {
 public:
  void script(Operation operation, Fault fault) { scripted_[operation].push_back(fault); }
  void chance(Operation operation, Fault fault, double probability) {
    chances_.push_back({operation, fault, probability});
  }
  void clear_chances() { chances_.clear(); }
  void seed(std::uint64_t seed) { random_.seed(seed); }

  std::optional<Fault> draw(Operation operation);

 private:
  struct Chance {
    Operation operation;
    Fault fault;
    double probability;
  };
  std::map<Operation, std::deque<Fault>> scripted_;
  std::vector<Chance> chances_;
  std::mt19937_64 random_{1};
};

}  // namespace e2b
