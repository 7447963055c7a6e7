#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "executor/process/groups.h"
#include "executor/process/spawn.h"
#include "libs/aio/task.h"
#include "libs/base/result.h"

// Holds a command and all that comes of it, whatever it forks, whichever session it makes and
// whoever it becomes, and knows for certain when nothing of it is left.
namespace executor {

struct Exit {
  std::optional<int> code, signal;  // One of them.
  bool operator==(const Exit&) const = default;
};
Exit exit_of(int wait_status);

// What a containment tells while it is watched.
struct TreeNews {
  std::function<void(pid_t)> begun;         // The pid of the command itself.
  std::function<void(const Exit&)> exited;  // The command itself.
};

// Destroying one kills what is left, without a proof.
class Containment {
 public:
  virtual ~Containment() = default;
  // Until no member is left, proven; kUnavailable when that can never be proven any more. Call
  // once; `news` outlives it.
  virtual aio::Task<base::Result<base::Done>> watch(const TreeNews& news) = 0;
  // Those who live now. A number in it may be a stranger's a moment later.
  virtual std::vector<pid_t> members() const = 0;
  // Ends all members; that it has is for watch() to say.
  virtual base::Result<base::Done> kill() = 0;
};

struct Contained {
  Launched ends;  // Without what the containment needs of it.
  std::unique_ptr<Containment> tree;
};

class Containments {
 public:
  virtual ~Containments() = default;
  // `launch` is complete but for what holds it. The report is the caller's to read.
  virtual base::Result<Contained> begin(Launch launch) = 0;
  // Now and then, for what could not be tidied up at once. Whoever lets them hold something may
  // call it: how often that is done depends on the time alone.
  virtual void tend(base::Moment /*now*/) {}
  // By those that are held now, and what came of them, also what has ended; 0 where nobody counts.
  virtual base::Milliseconds cpu_used() const { return {}; }
};

// A cgroup for each command (exact, and spares nobody); a reaper where none can be made. What an
// earlier life of this program left in `groups` is killed: that program must be gone.
std::unique_ptr<Containments> contain_by_groups(aio::Executor executor, Groups groups);
// A reaper for each command. It cannot kill members that became another user.
std::unique_ptr<Containments> contain_by_reapers(aio::Executor executor);

// Sends a signal to each of those whom `list` names, once, and also to those they fork meanwhile.
// How many got it; kDenied when there were some, and none could be signalled.
base::Result<int> signal_each(const std::function<std::vector<pid_t>()>& list, int number);

}  // namespace executor
