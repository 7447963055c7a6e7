#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "libs/base/fd.h"
#include "libs/base/json.h"
#include "libs/base/result.h"

// A box: one sandbox's process tree in its own mount, PID, UTS, IPC, network and user namespaces,
// in a root assembled by allow-list, in a cgroup that can be frozen and killed as one.
namespace local_e2b {

// What this machine can do for boxes; `lacks` names each missing thing and its cure.
struct Capabilities {
  bool root = false;
  bool cgroup2_freeze = false;
  bool idmapped_mounts = false;
  std::filesystem::path cgroup2;  // Where a cgroup2 hierarchy is mounted, found in mountinfo.
  std::vector<std::string> lacks;
};
Capabilities probe_capabilities();

struct BoxSettings {
  std::filesystem::path state;     // The server's folder: each box has <state>/boxes/<id>.
  std::filesystem::path executor;  // The sandfleet-executor binary, shown to each box.
  std::vector<std::filesystem::path> extra_lowers;  // Host folders overlaid beside /usr and /opt.
  std::string cgroup_name;  // Folder under the cgroup2 mount that holds the boxes of this server.
};

struct BoxSpec {
  std::string id;
  bool executor_baked_in =
      false;  // Template base-executor: also at /opt/sandfleet/bin/sandfleet-executor.
};

// Enough to find a box again after the server died: kept as JSON by the server.
struct BoxRecord {
  std::string id;
  pid_t init_pid = 0;  // In the server's PID namespace.
  std::uint64_t init_start =
      0;  // Field 22 of /proc/PID/stat, so that a reused pid is not believed.
  std::filesystem::path folder;
  std::filesystem::path cgroup;
  std::uint32_t uid_base = 0;
};
base::Json to_json(const BoxRecord& record);
base::Result<BoxRecord> box_record_from_json(const base::Json& json);

// Blocking calls of a few milliseconds to a few hundred; each is safe to repeat. The caller
// serialises calls per box and may run them on any thread.
class Boxes {
 public:
  explicit Boxes(BoxSettings settings, Capabilities capabilities);

  // Builds the root, starts `sandfleet-executor --envd` as init, returns once the process is there
  // (not yet once it listens). A failure leaves nothing behind.
  base::Result<BoxRecord> create(const BoxSpec& spec);
  // Whether the recorded init is alive: pid, start time and cgroup all agree.
  bool alive(const BoxRecord& record) const;
  base::Result<base::Done> freeze(const BoxRecord& record);
  base::Result<base::Done> thaw(const BoxRecord& record);
  bool frozen(const BoxRecord& record) const;
  // Everything of it is gone when this returns ok: processes (cgroup empty), mounts, cgroup,
  // folder.
  base::Result<base::Done> destroy(const BoxRecord& record);
  // Boxes whose cgroup or folder is there but that `known` does not name: destroys them; returns
  // their ids.
  std::vector<std::string> destroy_unknown(const std::vector<BoxRecord>& known);
  // A non-blocking TCP socket made inside the box's network namespace, not yet connected.
  base::Result<base::Fd> socket_inside(const BoxRecord& record) const;

 private:
  BoxSettings settings_;
  Capabilities capabilities_;
};

}  // namespace local_e2b
