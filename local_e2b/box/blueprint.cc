#include "local_e2b/box/blueprint.h"

#include <algorithm>

namespace local_e2b {
namespace fs = std::filesystem;
namespace {

bool is_real_folder(const fs::path& path) {
  std::error_code failed;
  return fs::symlink_status(path, failed).type() == fs::file_type::directory;
}

bool is_within(const fs::path& inner, const fs::path& outer) {
  const fs::path relative = inner.lexically_relative(outer);
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

base::Json to_json(const Blueprint& plan) {
  base::Json extra = base::Json::array();
  for (const fs::path& lower : plan.extra_lowers) extra.push_back(lower.string());
  base::Json json = {{"id", plan.id},
                     {"folder", plan.folder.string()},
                     {"cgroup", plan.cgroup.string()},
                     {"executor", plan.executor.string()},
                     {"etc", plan.etc.string()},
                     {"executorBakedIn", plan.executor_baked_in},
                     {"executorDigest", plan.executor_digest},
                     {"extraLowers", extra},
                     {"firstUid", plan.ids.uid},
                     {"firstGid", plan.ids.gid},
                     {"idCount", plan.ids.count},
                     {"serverPid", plan.server_pid},
                     {"failAt", plan.fail_at}};
  if (plan.descriptors) json["descriptors"] = *plan.descriptors;
  return json;
}

base::Result<Blueprint> blueprint_from_json(const base::Json& json) {
  const auto id = base::text_at(json, "id");
  const auto folder = base::text_at(json, "folder");
  const auto cgroup = base::text_at(json, "cgroup");
  const auto executor = base::text_at(json, "executor");
  const auto etc = base::text_at(json, "etc");
  const auto uid = base::integer_at(json, "firstUid");
  const auto gid = base::integer_at(json, "firstGid");
  const auto count = base::integer_at(json, "idCount");
  const auto server_pid = base::integer_at(json, "serverPid");
  const base::Json* extra = base::array_at(json, "extraLowers");
  if (!id || !folder || !cgroup || !executor || !etc || !uid || !gid || !count || !server_pid ||
      !extra)
    return base::error(base::ErrorCode::kInvalid, "a part of the blueprint is missing");
  Blueprint plan{*id, *folder, *cgroup, *executor, *etc};
  plan.executor_baked_in = base::bool_at(json, "executorBakedIn").value_or(false);
  plan.executor_digest = base::text_at(json, "executorDigest").value_or("");
  for (const base::Json& lower : *extra)
    if (lower.is_string()) plan.extra_lowers.emplace_back(lower.get<std::string>());
  plan.ids = {static_cast<uid_t>(*uid), static_cast<gid_t>(*gid),
              static_cast<std::uint32_t>(*count)};
  plan.server_pid = static_cast<pid_t>(*server_pid);
  if (const auto descriptors = base::integer_at(json, "descriptors"))
    plan.descriptors = static_cast<std::size_t>(*descriptors);
  plan.fail_at = base::text_at(json, "failAt").value_or("");
  return plan;
}

base::Json to_json(const StepFailure& failure) {
  return {{"step", failure.step}, {"message", failure.message}};
}

std::vector<Overlay> overlays_of(const Blueprint& plan) {
  static constexpr const char* kShared[] = {"/usr", "/opt",   "/bin",   "/sbin",
                                            "/lib", "/lib32", "/lib64", "/libx32"};
  std::vector<Overlay> overlays{{plan.etc, "etc"}};
  const auto add = [&](const fs::path& source) {
    const Overlay overlay{source, source.relative_path()};
    if (is_real_folder(source) &&
        std::find(overlays.begin(), overlays.end(), overlay) == overlays.end())
      overlays.push_back(overlay);
  };
  for (const char* source : kShared) add(source);
  for (const fs::path& source : plan.extra_lowers) add(source);
  return overlays;
}

std::optional<std::string> objection_to_lower(const fs::path& lower, const fs::path& state) {
  const fs::path plain = lower.lexically_normal();
  if (!lower.is_absolute() || plain != lower || !plain.has_filename())
    return "it must be an absolute path without '..', '.' or a slash at its end";
  if (!is_real_folder(lower)) return "it is not a folder on this machine";
  for (const char* own :
       {"/proc", "/sys", "/dev", "/run", "/etc", "/home", "/root", "/tmp", "/var"})
    if (plain == own) return "a box has its own; name a folder inside it";
  for (const char* own : {"/proc", "/sys", "/dev", "/run"})
    if (is_within(plain, own)) return "it is inside a folder of which a box has its own";
  if (is_within(state, plain) || is_within(plain, state))
    return "it would show the files of other boxes; keep the state folder apart from it";
  return std::nullopt;
}

}  // namespace local_e2b
