#include "local_e2b/state/records.h"

#include "libs/base/files.h"
#include "libs/base/log.h"

namespace local_e2b {

namespace fs = std::filesystem;

base::Result<Records> Records::open(const fs::path& state) {
  const fs::path folder = state / "sandboxes";
  CHECK_OK(base::make_folders(state, 0755));
  CHECK_OK(base::make_folders(folder, 0700));
  TRY(base::Fd lock, base::lock_file(state / "lock"));
  return Records(folder, std::move(lock));
}

base::Result<base::Done> Records::save(const Sandbox& sandbox) const {
  return base::write_file_atomically(path_of(sandbox.id), base::to_text(to_json(sandbox), 1), 0600,
                                     base::Durable::kPastProcess);
}

void Records::remove(const std::string& id) const {
  std::error_code failed;
  fs::remove(path_of(id), failed);
  if (failed)
    base::log::warn("cannot remove a record", {{"sandbox", id}, {"error", failed.message()}});
}

namespace {

base::Result<Sandbox> read_record(const fs::path& path) {
  TRY(const std::string text, base::read_file(path));
  TRY(const base::Json json, base::parse_json(text));
  return sandbox_from_json(json);
}

}  // namespace

std::vector<Sandbox> Records::load() const {
  std::vector<Sandbox> sandboxes;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder_, failed)) {
    if (entry.path().extension() != ".json") {
      fs::remove(entry.path(), failed);  // Staged, and never put in place.
      continue;
    }
    auto sandbox = read_record(entry.path());
    if (sandbox) {
      sandboxes.push_back(*std::move(sandbox));
      continue;
    }
    base::log::error("a record cannot be read; its sandbox will be destroyed",
                     {{"file", entry.path().string()}, {"error", sandbox.error()}});
    fs::remove(entry.path(), failed);
  }
  return sandboxes;
}

}  // namespace local_e2b
