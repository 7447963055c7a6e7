#include "libs/manifests/state_reader.h"

#include <algorithm>

#include "libs/manifests/event_log.h"
#include "libs/manifests/record.h"

namespace manifests {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;

namespace {

Result<Facts> facts_of(const Layout& layout) {
  TRY(const auto json, read_json_file(layout.facts()));
  if (!json)
    return base::error(
        ErrorCode::kNotFound, layout.state.string(),
        " is no state folder of a controller that has run; give the folder after its --state");
  auto facts = facts_from_json(*json);
  if (!facts)
    return base::error(ErrorCode::kInvalid, layout.facts().string(), " ", facts.error().message);
  return facts;
}

}  // namespace

fs::path attach_socket_in(const fs::path& state) { return Layout{state}.attach_socket(); }

Result<std::vector<api::Sandbox>> StateReader::sandboxes() const {
  const Layout layout{state_};
  CHECK_OK(facts_of(layout));
  TRY(const auto records, read_records(layout, Kind::kSandbox));
  std::vector<api::Sandbox> sandboxes;
  for (const Record& record : records)
    if (record.sandbox) sandboxes.push_back(*record.sandbox);
  std::ranges::sort(sandboxes, {}, [](const api::Sandbox& each) { return each.metadata.key; });
  return sandboxes;
}

Result<std::optional<api::Sandbox>> StateReader::sandbox(const api::Key& key) const {
  const Layout layout{state_};
  CHECK_OK(facts_of(layout));
  TRY(const auto json, read_json_file(layout.record({Kind::kSandbox, key})));
  if (!json) return std::optional<api::Sandbox>();
  TRY(const auto record, record_from_json(*json));
  return record.sandbox ? std::optional(*record.sandbox) : std::nullopt;
}

Result<std::vector<api::SandboxProvider>> StateReader::providers() const {
  const Layout layout{state_};
  CHECK_OK(facts_of(layout));
  TRY(const auto records, read_records(layout, Kind::kProvider));
  std::vector<api::SandboxProvider> providers;
  for (const Record& record : records)
    if (record.provider) providers.push_back(*record.provider);
  std::ranges::sort(providers, {}, [](const auto& each) { return each.metadata.key; });
  return providers;
}

Result<std::vector<api::RecordedEvent>> StateReader::events() const {
  const Layout layout{state_};
  CHECK_OK(facts_of(layout));
  return read_events(layout.events());
}

Result<std::vector<yaml::Problem>> StateReader::problems() const {
  const Layout layout{state_};
  CHECK_OK(facts_of(layout));
  TRY(const auto json, read_json_file(layout.problems()));
  std::vector<yaml::Problem> problems;
  if (json && json->is_array())
    for (const base::Json& problem : *json) problems.push_back(yaml::problem_from_json(problem));
  return problems;
}

Result<std::optional<Brake>> StateReader::brake() const {
  const Layout layout{state_};
  CHECK_OK(facts_of(layout));
  TRY(const auto json, read_json_file(layout.brake()));
  if (!json) return std::optional<Brake>();
  TRY(auto brake, brake_from_json(*json));
  return std::optional<Brake>(std::move(brake));
}

Result<bool> StateReader::held() const { return base::is_locked(Layout{state_}.lock()); }

Result<fs::path> StateReader::manifests() const {
  TRY(const auto facts, facts_of(Layout{state_}));
  return fs::path(facts.manifests);
}

Result<Source> StateReader::source_of(Kind kind, const api::Key& key) const {
  const Layout layout{state_};
  TRY(const auto facts, facts_of(layout));
  const Id id{kind, key};
  TRY(const auto json, read_json_file(layout.record(id)));
  if (!json) return base::error(ErrorCode::kNotFound, to_text(id), " is not on record");
  TRY(const auto record, record_from_json(*json));
  return Source{fs::path(facts.manifests) / record.file, record.document};
}

}  // namespace manifests
