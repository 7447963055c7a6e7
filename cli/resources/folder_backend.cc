#include "cli/resources/folder_backend.h"

#include <algorithm>

#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/manifests/edit.h"
#include "libs/manifests/reading.h"

namespace cli {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::uintmax_t kSpaceMin = 64u << 10;  // A controller needs no less for its next records.
constexpr base::Milliseconds kLook{200};         // A folder is looked at again this often.

std::string title(const api::Key& key) { return "sandbox/" + key.name; }

Result<base::Done> ask(const fs::path& state, manifests::Request::Kind kind, const api::Key& key) {
  CHECK_OK(manifests::write_request(state, {.kind = kind, .key = key}));
  return base::Done{};
}

// Removing a file takes everything in it along, so it must hold nothing else.
Result<base::Done> check_holds_only(const fs::path& file, const api::Key& key) {
  TRY(const auto text, base::read_file(file));
  const auto reading = manifests::read_manifest(text, file.filename().string(), key.space);
  if (!reading.problems.empty()) {
    return base::error(ErrorCode::kConflict, file.string(),
                       " cannot be read, so it is not removed: ", to_text(reading.problems));
  }
  if (reading.objects.size() != 1 || reading.objects[0].key != key) {
    return base::error(ErrorCode::kConflict, file.string(), " declares ",
                       std::to_string(reading.objects.size()),
                       " objects, so it is not removed; take the document of ", to_text(key),
                       " out by hand, or delete without --remove-manifest");
  }
  return base::Done{};
}

}  // namespace

Result<std::vector<api::Sandbox>> FolderBackend::sandboxes(const Where& where) {
  TRY(auto all, reader_.sandboxes());
  std::erase_if(all, [&](const auto& each) { return !is_in(where, each.metadata.key); });
  return all;
}
Result<std::optional<api::Sandbox>> FolderBackend::sandbox(const api::Key& key) {
  return reader_.sandbox(key);
}
Result<std::vector<api::SandboxProvider>> FolderBackend::providers(const std::string& name) {
  TRY(auto all, reader_.providers());
  std::erase_if(all, [&](const auto& each) { return !is_in({"", name}, each.metadata.key); });
  return all;
}
Result<std::vector<api::RecordedEvent>> FolderBackend::events(const Where& regarding) {
  TRY(auto all, reader_.events());
  std::erase_if(all, [&](const auto& each) { return !is_in(regarding, each.regarding); });
  return all;
}

bool FolderBackend::await_change(const Query&, base::Milliseconds most) {
  return sleep_(std::min(most, kLook));
}

Result<std::vector<std::string>> FolderBackend::warnings() {
  std::vector<std::string> warnings;
  TRY(const auto problems, reader_.problems());
  warnings.reserve(problems.size() + 1);
  for (const auto& problem : problems) warnings.push_back(to_text(problem));
  TRY(const auto brake, reader_.brake());
  if (brake) warnings.push_back("nothing is being deleted: " + brake->reason);
  if (const std::string full = warning_of_space(); !full.empty()) warnings.push_back(full);
  return warnings;
}

// A controller that cannot write says so nowhere in its folder.
std::string FolderBackend::warning_of_space() const {
  std::error_code failed;
  const auto space = fs::space(state_, failed);
  if (failed || space.available >= kSpaceMin) return "";
  return "the disk of " + state_.string() + " is full (" + std::to_string(space.available) +
         " bytes are left), so a controller records nothing new and this may be old: make room";
}

std::string FolderBackend::idleness() {
  const auto held = reader_.held();
  if (!held || *held) return "";
  return "no controller is running on " + state_.string() +
         ", so this is as the last one left it; start sandfleet-controller with --state " +
         state_.string();
}

std::string FolderBackend::origin(const api::Key& key) {
  const auto source = reader_.source_of(manifests::Kind::kSandbox, key);
  if (!source) return "";
  std::string text = source->file.string();
  if (source->document > 0) text += ", document " + std::to_string(source->document + 1);
  return text;
}

Result<Asked> FolderBackend::set_desired_state(const api::Sandbox& seen, api::DesiredState state) {
  const api::Key& key = seen.metadata.key;
  TRY(const auto source, reader_.source_of(manifests::Kind::kSandbox, key));
  auto edited = manifests::edit_scalar_in_file(source.file, source.document,
                                               {"spec", "desiredState"}, to_word(state));
  // What cannot be edited in place is refused, which is not the fault of the words typed.
  if (!edited && edited.error().code == ErrorCode::kInvalid) {
    return base::error(ErrorCode::kConflict, source.file.string(), ": ", edited.error().message);
  }
  if (!edited) return edited.error();
  return Asked{title(key) + " desiredState " + std::string(to_word(state)) + " in " +
               source.file.string()};
}

Result<Asked> FolderBackend::request(const api::Sandbox& seen, manifests::Request::Kind kind,
                                     const std::string& what) {
  const api::Key& key = seen.metadata.key;
  TRY(auto request,
      manifests::write_request(state_, {.kind = kind, .key = key, .uid = seen.metadata.uid}));
  return Asked{.what = title(key) + " " + what + " requested", .request = std::move(request)};
}

Result<Asked> FolderBackend::request_wake(const api::Sandbox& seen) {
  return request(seen, manifests::Request::Kind::kWake, "wake");
}

Result<Asked> FolderBackend::request_look(const api::Sandbox& seen) {
  return request(seen, manifests::Request::Kind::kReconcile, "look");
}

Result<Asked> FolderBackend::apply(const Manifest& manifest) {
  const auto& name = manifest.name;
  const auto& text = manifest.text;
  const auto& space = manifest.space;
  const fs::path given = name.empty() ? fs::path("stdin.yaml") : fs::path(name);
  const auto reading = manifests::read_manifest(text, given.string(), space);
  if (!reading.problems.empty()) {
    return base::error(ErrorCode::kInvalid, to_text(reading.problems));
  }
  if (reading.objects.empty()) {
    return base::error(ErrorCode::kInvalid, given.string(), " declares no object");
  }
  // What came through a pipe is named by its first object.
  const std::string file =
      name.empty() ? reading.objects[0].key.name + ".yaml" : given.filename().string();
  TRY(const auto folder, reader_.manifests());
  const auto before = base::read_file(folder / file);
  CHECK_OK(manifests::apply_manifest(folder, file, text, space));

  Asked asked;
  for (const auto& object : reading.objects) {
    if (!asked.what.empty()) asked.what += "\n";
    asked.what += base::lower(to_word(object.kind)) + "/" + object.key.name + " applied in " +
                  (folder / file).string();
    if (object.kind != manifests::Kind::kSandbox) continue;
    TRY(const auto sandbox, api::sandbox_from_json(object.object));
    asked.sandboxes.emplace(object.key, sandbox.spec);
    // The same text again asks for what was deleted while its manifest stayed.
    if (!before || *before != text) continue;
    TRY(const auto present, reader_.sandbox(object.key));
    if (!present) CHECK_OK(ask(state_, manifests::Request::Kind::kRecreate, object.key));
  }
  return asked;
}

Result<Asked> FolderBackend::remove(const api::Sandbox& seen, const Removal& removal) {
  const api::Key& key = seen.metadata.key;
  const auto source = reader_.source_of(manifests::Kind::kSandbox, key);
  if (removal.remove_manifest && source) CHECK_OK(check_holds_only(source->file, key));

  TRY(auto request, manifests::write_request(state_, {.kind = manifests::Request::Kind::kDelete,
                                                      .key = key,
                                                      .uid = seen.metadata.uid,
                                                      .policy = removal.policy}));
  Asked asked{.what = title(key) + " deletion requested", .request = std::move(request)};
  std::error_code failed;
  if (!source || !fs::exists(source->file, failed)) return asked;
  if (!removal.remove_manifest) {
    asked.what += "; " + source->file.string() +
                  " stays, and is passed over until it changes or is applied again";
    return asked;
  }
  if (!fs::remove(source->file, failed)) {
    return base::error(ErrorCode::kUnavailable, "cannot remove ", source->file.string(), ": ",
                       failed.message());
  }
  asked.what += ", " + source->file.string() + " removed";
  return asked;
}

Result<std::optional<std::string>> FolderBackend::refusal(const std::string& request) {
  const auto answer = manifests::request_result(state_, request);
  if (!answer && answer.error().code == ErrorCode::kNotFound) return std::optional<std::string>();
  if (!answer) return answer.error();
  if (!*answer || (*answer)->done) return std::optional<std::string>();
  return std::optional((*answer)->message);
}

}  // namespace cli
