#include "local_e2b/state/json_folder.h"

#include "libs/base/files.h"
#include "libs/base/folder.h"
#include "libs/base/log.h"

namespace local_e2b {

namespace fs = std::filesystem;

base::Result<JsonFolder> JsonFolder::open(fs::path folder) {
  CHECK_OK(base::make_folders(folder, 0700));
  return JsonFolder(std::move(folder));
}

base::Result<base::Done> JsonFolder::save(const std::string& name, const base::Json& json) const {
  return base::write_file_atomically(path_of(name), base::to_text(json, 1), 0600,
                                     base::Durable::kPastProcess);
}

void JsonFolder::remove(const std::string& name) const {
  std::error_code failed;
  fs::remove(path_of(name), failed);
  if (failed)
    base::log::warn("cannot remove a record",
                    {{"file", path_of(name).string()}, {"error", failed.message()}});
}

void JsonFolder::each(const std::function<base::Result<base::Done>(const base::Json&)>& take,
                      std::string_view what_follows) const {
  const auto read = [&](const fs::path& path) -> base::Result<base::Done> {
    TRY(const std::string text, base::read_file(path));
    TRY(const base::Json json, base::parse_json(text));
    return take(json);
  };
  std::error_code failed;
  for (const fs::path& path : base::entries_of(folder_)) {
    if (path.extension() == ".json") {
      const auto taken = read(path);
      if (taken) continue;
      base::log::error(
          "a record cannot be read",
          {{"file", path.string()}, {"error", taken.error()}, {"so", std::string(what_follows)}});
    }
    fs::remove(path, failed);  // Staged and never put in place, or unreadable.
  }
}

}  // namespace local_e2b
