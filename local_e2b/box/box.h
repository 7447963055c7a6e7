#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "libs/base/fd.h"
#include "libs/base/json.h"
#include "libs/base/result.h"
#include "local_e2b/box/file_digest.h"
#include "local_e2b/box/uid_ranges.h"

// A box: one sandbox's process tree in its own mount, PID, UTS, IPC, network and user namespaces,
// in a root assembled by allow-list. Where the server may make cgroups it is in one of its own,
// that can be frozen and killed as one. The server of the host's root gives each box a range of
// uids; any other gives its own uid to all of them.
namespace local_e2b {

// What this machine can do for boxes.
struct Capabilities {
  bool root = false;
  // The folder in which this server may make cgroups; empty when there is none.
  std::filesystem::path cgroup2;
  std::vector<std::string> lacks;  // What boxes need and is not there, each with its cure.
  std::string no_pause;  // Why boxes cannot be paused, with the cure; empty when they can.
};
Capabilities probe_capabilities();

struct BoxSettings {
  std::filesystem::path state;     // The server's folder: each box has <state>/boxes/<id>.
  std::filesystem::path executor;  // The sandfleet-executor binary, shown to each box.
  std::vector<std::filesystem::path> extra_lowers;  // Host folders overlaid beside /usr and /opt.
  std::string cgroup_name;  // Folder in Capabilities::cgroup2 for the boxes of this server.
  // The program that builds a box, started afresh for each: it calls run_box_builder.
  std::filesystem::path builder = "/proc/self/exe";
  std::optional<std::size_t> descriptors =
      {};               // Soft limit of a box's processes; else the server's.
  std::string fail_at;  // Fault injection: the step of build_steps() that fails.
};

// The first line of main() of the program that BoxSettings::builder names. It gives an exit code
// when the program was started to build a box, and nothing when it was started by a person.
std::optional<int> run_box_builder(int argc, char** argv);

// The names of the steps of building a box, in order: an error names the one that failed.
std::vector<std::string> build_steps();

struct BoxSpec {
  std::string id;
  // Template base-executor: also at /opt/sandfleet/bin/sandfleet-executor, its digest beside it.
  bool executor_baked_in = false;
};

// Enough to find a box again after the server died: kept as JSON by the server.
struct BoxRecord {
  std::string id;
  pid_t init_pid = 0;  // In the server's PID namespace.
  std::uint64_t init_start =
      0;  // Field 22 of /proc/PID/stat, so that a reused pid is not believed.
  std::filesystem::path folder;
  std::filesystem::path cgroup;  // Empty: it has none, and cannot be paused.
  std::uint32_t uid_base = 0;    // Who root inside is on the host.
};
base::Json to_json(const BoxRecord& record);
base::Result<BoxRecord> box_record_from_json(const base::Json& json);

// What came of boxes that nobody knew.
struct Swept {
  std::vector<std::string> destroyed;
  std::vector<BoxRecord> left;  // Enough of a record to destroy it later.
};

// Where a box shows the executor, read-only and owned by its root: the file its init runs.
inline constexpr char kEnvdPath[] = "/run/sandfleet/envd";
inline constexpr char kBakedExecutorPath[] = "/opt/sandfleet/bin/sandfleet-executor";
inline constexpr std::size_t kBoxesMax = 4096;  // On one machine: so many uid ranges are ours.
inline constexpr std::size_t kLogBytesMax = 1 << 20;  // Of <folder>/envd.log, see trim_log.

// Blocking calls of a few milliseconds to a few hundred; each is safe to repeat. The caller
// serialises calls per box and may run them on any thread. A box is a child of this process until
// the process ends: it is reaped by destroy.
class Boxes {
 public:
  explicit Boxes(BoxSettings settings, Capabilities capabilities);

  // Builds the root, starts `sandfleet-executor --envd` as init, returns once the process is there
  // (not yet once it listens). A failure leaves nothing behind. An id is 1 to 63 of A-Z a-z 0-9 _ -
  // and is the host name inside.
  base::Result<BoxRecord> create(const BoxSpec& spec);
  // Whether the recorded init is alive: pid, start time and cgroup all agree, or without a cgroup
  // the kernel's boot.
  bool alive(const BoxRecord& record) const;
  // Whether it is known not to be: false as well while that cannot be found out.
  bool dead(const BoxRecord& record) const;
  // Why that box, or without one any new box, cannot be frozen; nothing when it can.
  std::optional<std::string> objection_to_freeze(const BoxRecord* record = nullptr) const;
  base::Result<base::Done> freeze(const BoxRecord& record);
  base::Result<base::Done> thaw(const BoxRecord& record);
  bool frozen(const BoxRecord& record) const;
  // Everything of it is gone when this returns ok: processes, mounts, cgroup, folder.
  base::Result<base::Done> destroy(const BoxRecord& record);
  // Boxes whose cgroup or folder is there but that `known` does not name: destroys them. Not while
  // create runs, whose box nobody knows yet.
  Swept destroy_unknown(const std::vector<BoxRecord>& known);
  // Boxes of any server on this machine whose folder somebody has removed, see orphans.h; their
  // ids.
  std::vector<std::string> destroy_orphans();
  // A non-blocking TCP socket made inside the box's network namespace, not yet connected.
  base::Result<base::Fd> socket_inside(const BoxRecord& record) const;
  // Cuts <folder>/envd.log to nothing when it has grown past kLogBytesMax. freeze calls it; a
  // server whose boxes are never frozen calls it now and then.
  base::Result<base::Done> trim_log(const BoxRecord& record) const;

 private:
  enum class Life { kAlive, kDead, kUnknown };
  Life look_at(const BoxRecord& record) const;
  std::filesystem::path folder_of(const std::string& id) const;
  std::filesystem::path own_cgroup() const;
  std::filesystem::path cgroup_of(const std::string& id) const;
  bool may_be_cgroup_of(const std::string& id, const std::filesystem::path& cgroup) const;
  base::Result<base::Done> prepare();
  base::Result<BoxIds> choose_ids() const;
  base::Result<BoxIds> claim(const std::string& id);
  base::Result<BoxRecord> build(const BoxSpec& spec, const BoxIds& ids);
  base::Result<base::Done> remove(const std::string& id, const std::filesystem::path& cgroup);
  void remove_empty(const std::filesystem::path& cgroup);
  void reap(const std::string& id);

  const BoxSettings settings_;
  const Capabilities capabilities_;
  FileDigest executor_digest_;
  std::mutex mutex_;  // Held while a uid range is chosen and marked as taken, and for what follows.
  std::filesystem::path etc_;              // The copy of /etc that boxes start from; set once.
  std::map<std::string, pid_t> children_;  // Inits that are children of this process, by box.
};

}  // namespace local_e2b
