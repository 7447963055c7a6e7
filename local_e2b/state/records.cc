#include "local_e2b/state/records.h"

#include "libs/base/files.h"

namespace local_e2b {

base::Result<Records> Records::open(const std::filesystem::path& state) {
  CHECK_OK(base::make_folders(state, 0755));
  TRY(JsonFolder sandboxes, JsonFolder::open(state / "sandboxes"));
  TRY(base::Fd lock, base::lock_file(state / "lock"));
  return Records(std::move(sandboxes), std::move(lock));
}

base::Result<base::Done> Records::save(const Sandbox& sandbox) const {
  return sandboxes_.save(sandbox.id, to_json(sandbox));
}

std::vector<Sandbox> Records::load() const {
  std::vector<Sandbox> sandboxes;
  sandboxes_.each(
      [&](const base::Json& json) -> base::Result<base::Done> {
        TRY(Sandbox sandbox, sandbox_from_json(json));
        sandboxes.push_back(std::move(sandbox));
        return base::Done{};
      },
      "its sandbox will be destroyed");
  return sandboxes;
}

}  // namespace local_e2b
