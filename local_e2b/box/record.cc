#include "local_e2b/box/box.h"

namespace local_e2b {

base::Json to_json(const BoxRecord& record) {
  return {{"id", record.id},
          {"initPid", record.init_pid},
          {"initStart", record.init_start},
          {"folder", record.folder.string()},
          {"cgroup", record.cgroup.string()},
          {"uidBase", record.uid_base}};
}

base::Result<BoxRecord> box_record_from_json(const base::Json& json) {
  const auto id = base::text_at(json, "id");
  const auto pid = base::integer_at(json, "initPid");
  const auto start = base::integer_at(json, "initStart");
  const auto folder = base::text_at(json, "folder");
  const auto cgroup = base::text_at(json, "cgroup");
  const auto uid_base = base::integer_at(json, "uidBase");
  if (!id || !pid || !start || !folder || !cgroup || !uid_base)
    return base::error(base::ErrorCode::kInvalid,
                       "a box record needs id, initPid, initStart, folder, cgroup and uidBase");
  if (*pid < 1 || *pid > INT32_MAX || *start < 0 || *uid_base < 0 || *uid_base > UINT32_MAX)
    return base::error(base::ErrorCode::kInvalid, "the record of box ", *id,
                       " has a number out of range");
  return BoxRecord{*id,
                   static_cast<pid_t>(*pid),
                   static_cast<std::uint64_t>(*start),
                   *folder,
                   *cgroup,
                   static_cast<std::uint32_t>(*uid_base)};
}

}  // namespace local_e2b
