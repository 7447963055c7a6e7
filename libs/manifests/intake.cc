#include "libs/manifests/intake.h"

#include <algorithm>

#include "libs/base/files.h"

namespace manifests {

namespace fs = std::filesystem;
using base::Done;
using base::Result;

namespace {

std::vector<std::string> ids_in(const fs::path& folder) {
  std::vector<std::string> ids;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; entry != end; entry.increment(error)) {
    if (error) break;
    const fs::path& path = entry->path();
    if (path.extension() == ".json" && !path.filename().string().starts_with('.'))
      ids.push_back(path.stem().string());
  }
  std::ranges::sort(ids);
  return ids;
}

Result<Request> read_request(const fs::path& path) {
  constexpr std::size_t kBytesMax = 64 << 10;
  TRY(const auto content, base::read_file(path, kBytesMax));
  TRY(const auto json, base::parse_json(content));
  return request_from_json(json);
}

}  // namespace

Result<std::vector<Intake::Pending>> Intake::pending() const {
  std::vector<Pending> pending;
  for (const std::string& id : ids_in(layout_.requests())) {
    if (pending.size() >= kRequestsMax) break;
    pending.push_back({id, read_request(layout_.requests() / (id + ".json"))});
  }
  return pending;
}

Result<Done> Intake::pin(const std::string& id, const Request& request) const {
  return disk_.write(layout_.requests() / (id + ".json"), base::to_text(to_json(request)), 0600);
}

Result<Done> Intake::answer(const std::string& id, const RequestResult& result) const {
  const base::Json json = {{"done", result.done}, {"message", result.message}};
  CHECK_OK(disk_.write(layout_.results() / (id + ".json"), base::to_text(json), 0600));
  CHECK_OK(disk_.remove(layout_.requests() / (id + ".json")));
  return prune_results();
}

Result<Done> Intake::prune_results() const {
  const auto ids = ids_in(layout_.results());
  for (std::size_t index = 0; index + kResultsMax < ids.size(); ++index)
    CHECK_OK(disk_.remove(layout_.results() / (ids[index] + ".json")));
  return Done{};
}

}  // namespace manifests
