#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/confine/permission.h"
#include "executor/subprocess/containment.h"
#include "executor/subprocess/environment.h"
#include "executor/subprocess/spill.h"
#include "executor/subprocess/subprocess.h"
#include "executor/users/users.h"
#include "libs/aio/background.h"
#include "libs/aio/loop.h"
#include "libs/aio/task.h"
#include "libs/base/clock.h"

namespace executor {

struct SubprocessLimits {
  std::size_t running_max = 512;
  std::size_t over_max = 256;               // That are kept for whoever asks how it went.
  base::Milliseconds over_kept{600'000};    // In time awake: a pause does not count.
  base::Milliseconds killed_within{5'000};  // Else that a tree has ended is not proven.
  // What the outputs of those that run may come to hold, and of those that are over do hold; with
  // what waits for a stdin.
  std::int64_t held_bytes_max = 512 << 20;
};

// Whose programs these are.
struct SubprocessSite {
  aio::Executor executor;
  aio::Background& background;
  Containments& containments;
  std::shared_ptr<SpillFolder> spills;
  User user;  // Whom this process runs as.
  Environment environment;
  std::optional<std::size_t> descriptors = std::nullopt;  // The soft limit that they begin with.
  SubprocessLimits limits = {};
};

struct Caller {
  std::string session;
  Permission permission;
};

// What a harness starts in this sandbox, by the handles that it chose. One loop's state, no lock.
//   check -> make room -> confine -> contain -> follow to the proof that nothing is left
class Subprocesses {
 public:
  static constexpr base::Milliseconds kTick{1000};
  // What ends with its session has no more time than this to end by itself.
  static constexpr base::Milliseconds kGraceAtEndMax{5'000};

  explicit Subprocesses(SubprocessSite site);
  ~Subprocesses();  // Kills what still runs.
  Subprocesses(const Subprocesses&) = delete;
  Subprocesses& operator=(const Subprocesses&) = delete;

  // What the program is to read, on its way.
  using Upload = aio::Task<ProcessResult<std::string>>;

  // Returns when the program runs, or does not. It has its handle from then on also when nobody
  // heard the answer, and may be terminated by it before. `data` is waited for, and is all of its
  // stdin.
  aio::Task<ProcessResult<std::shared_ptr<Subprocess>>> spawn(Caller caller, SpawnRequest request,
                                                              std::optional<Upload> data = {});
  // Until nobody is about to begin by this handle.
  aio::Task<> until_begun(std::string id);
  // kNotFound, kLost, kDenied. find_begun: once nobody is about to begin by it.
  ProcessResult<std::shared_ptr<Subprocess>> find(const Caller& caller,
                                                  const std::string& id) const;
  aio::Task<ProcessResult<std::shared_ptr<Subprocess>>> find_begun(Caller caller, std::string id);
  // Also of one that is being spawned, which then does not begin.
  ProcessResult<base::Done> terminate(const Caller& caller, const std::string& id,
                                      std::optional<base::Milliseconds> grace);
  // From now on it ends with the caller's session.
  ProcessResult<base::Done> adopt(const Caller& caller, const std::string& id);
  // Forgets one that is over. kConflict: it is not.
  ProcessResult<base::Done> release(const Caller& caller, const std::string& id);
  // Those whose handles come after `after`, in order, as far as the caller may see them.
  std::vector<std::shared_ptr<Subprocess>> list(const Caller& caller, const std::string& after,
                                                std::size_t count_max) const;
  aio::Task<ProcessResult<std::string>> resolve_executable(std::string command,
                                                           EnvironmentChanges changes);

  // Ends all that the session started, waits for the proof, and forgets it. It starts nothing more
  // meanwhile. kTerminateFailed: of some there is none; they are still there, and it may be asked
  // again.
  aio::Task<ProcessResult<base::Done>> end_session(std::string session);
  // The incarnation has moved: whatever ran is another world's. It is killed, and its handles are
  // known as lost for as long as those that are over.
  void lose_all();
  // The same before this program ends; returns when they are gone, or cannot be made to.
  aio::Task<> end_all();

  // To be run beside: forgets what is old, and tidies up.
  aio::Task<> tend();
  void tick();  // kTick of time awake has passed.

 private:
  struct Starting {
    std::string session;
    PermissionMode mode = PermissionMode::kReadOnly;
    bool terminated = false;
  };
  struct UnderWay {
    explicit UnderWay(aio::Executor executor) : moved(std::move(executor)) {}
    std::map<std::string, Starting> starting;  // By their handles.
    aio::Condition moved;                      // One of those has begun, or will not.
    std::multiset<std::string> ending;         // Sessions.
  };
  struct Known {
    std::shared_ptr<Subprocess> process;
    std::optional<base::Milliseconds> over_since;
  };

  void end_before_the_begin(Starting& starting);
  aio::Task<> until_terminated(const Starting& starting);
  ProcessResult<base::Done> admit(const Caller& caller, const SpawnRequest& request);
  bool make_room_for(std::int64_t bytes);
  bool forget_oldest_over();
  void forget(std::map<std::string, Known>::iterator one);
  std::int64_t held_bytes() const;
  void note_what_is_over();
  aio::Task<ProcessResult<std::shared_ptr<const base::Fd>>> confine(Permission permission);
  ProcessResult<std::shared_ptr<Subprocess>> begin(const Caller& caller, SpawnRequest request,
                                                   std::shared_ptr<const base::Fd> confinement);
  Launch launch_for(const SpawnRequest& request) const;

  SubprocessSite site_;
  // Who spawns, or ends a session, may be told only after us that nobody waits for that any more.
  std::shared_ptr<UnderWay> under_way_;
  std::map<std::string, Known> known_;
  base::Milliseconds awake_{};
};

}  // namespace executor
