#include "local_e2b/control/describe.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include "libs/base/time.h"
#include "local_e2b/control/listing.h"

namespace local_e2b {

using base::Json;

MachineSize machine_size() {
  MachineSize size;
  constexpr std::int64_t kMega = 1 << 20;
  size.cpu_count = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
  size.memory_mb = std::max(1L, ::sysconf(_SC_PHYS_PAGES) / (kMega / ::sysconf(_SC_PAGESIZE)));
  struct statvfs disk{};
  if (::statvfs("/", &disk) == 0)
    size.disk_mb =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(disk.f_blocks * disk.f_frsize) / kMega);
  return size;
}

Json describe_handle(const Sandbox& sandbox) {
  Json json = {{"templateID", sandbox.template_id},
               {"alias", sandbox.template_id},
               {"sandboxID", sandbox.id},
               {"clientID", kClientId},
               {"envdVersion", sandbox.envd_version},
               {"envdAccessToken", sandbox.envd_token},
               {"domain", nullptr}};
  if (!sandbox.allow_public_traffic) json["trafficAccessToken"] = sandbox.traffic_token;
  return json;
}

Json describe_listed(const Sandbox& sandbox, const MachineSize& machine) {
  const bool paused = seen_as(sandbox.phase) == Seen::kPaused;
  Json json = {{"templateID", sandbox.template_id},
               {"alias", sandbox.template_id},
               {"sandboxID", sandbox.id},
               {"clientID", kClientId},
               {"startedAt", base::to_rfc3339(sandbox.started_at)},
               {"endAt", base::to_rfc3339(sandbox.end_at)},
               {"state", paused ? "paused" : "running"},
               {"envdVersion", sandbox.envd_version},
               {"cpuCount", machine.cpu_count},
               {"memoryMB", machine.memory_mb},
               {"diskSizeMB", machine.disk_mb},
               {"metadata", sandbox.metadata},
               {"volumeMounts", Json::array()}};
  // Only once the pause has finished: so a client tells pausing from paused.
  if (sandbox.phase == Phase::kPaused) json["pauseMode"] = "full";
  return json;
}

Json describe_detail(const Sandbox& sandbox, const MachineSize& machine) {
  Json json = describe_listed(sandbox, machine);
  json["envdAccessToken"] = sandbox.envd_token;
  json["domain"] = nullptr;
  json["lifecycle"] = {{"autoResume", sandbox.auto_resume},
                       {"onTimeout", sandbox.auto_pause ? "pause" : "kill"}};
  json["allowInternetAccess"] =
      sandbox.allow_internet_access ? Json(*sandbox.allow_internet_access) : Json(nullptr);
  if (sandbox.network.is_object()) json["network"] = sandbox.network;
  return json;
}

}  // namespace local_e2b
