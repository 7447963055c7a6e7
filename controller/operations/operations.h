#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "libs/api/sandbox.h"

namespace controller {

// What takes longer than a pass may: creates, pauses, resumes, preparation, kills.
struct Operation {
  api::Key key;
  std::string uid;
  std::string name;
  // Its stop is asked for only when the time to finish after SIGTERM is over, or, unless
  // `finishes`, at once.
  std::function<void(std::stop_token)> work;
  bool finishes = false;  // It must not be cut short: a create or a pause.
  enum class Line {
    kCommon,
    kPatient,  // Nobody waits for it: others go first.
    kBounded,  // A kill or a look: such take half of the threads, however long they hang.
  } line = Line::kCommon;
};

// Runs at most one Operation per Sandbox, and then has its key looked at again. One that is lost
// in a crash is found by the next look.
class Operations {
 public:
  virtual ~Operations() = default;
  // False, and nothing happens, when one runs for that UID or the pool is stopping or full.
  virtual bool start(Operation operation) = 0;
  // The name of what runs for it.
  virtual std::optional<std::string> running(const std::string& uid) const = 0;
};

}  // namespace controller
