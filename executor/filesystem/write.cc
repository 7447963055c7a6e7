#include "executor/filesystem/write.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "executor/filesystem/permit.h"
#include "executor/filesystem/publish.h"
#include "executor/filesystem/read.h"
#include "executor/filesystem/seam.h"
#include "executor/filesystem/walk.h"
#include "libs/base/log.h"

namespace executor {
namespace {

struct Seen {
  WriteFacts facts;
  base::Fd existing;  // O_PATH; empty when there is none.
};

// What is at `key` now. kIoError for a link: the address led past it.
FsResult<base::Done> look_at_target(const std::string& key, Seen& seen) {
  auto place = open_without_links(key, O_PATH);
  if (!place && place.error().error_number == ENOENT) return base::Done{};
  if (!place) return FsError(place.error());
  auto info = look_at(*place, key);
  if (!info) return FsError(info.error());
  if (info->kind == EntryKind::kSymlink) return FsError("write", key, ELOOP);
  seen.facts.existing = *std::move(info);
  seen.existing = *std::move(place);
  return base::Done{};
}

FsResult<Seen> look(const Permission& permission, const std::string& key,
                    const std::stop_token& abort) {
  Seen seen{.facts = {.aborted = abort.stop_requested(), .allowed = permits(permission, key)}};
  // What is seen does not matter then, so neither does a failure to see.
  if (!seen.facts.aborted && seen.facts.allowed) CHECK_OK(look_at_target(key, seen));
  return seen;
}

FsError refusal(FsCode code, const std::string& key) {
  switch (code) {
    case FsCode::kAborted:
      return aborted("write", key);
    case FsCode::kSandboxDenied:
      return fs_error(code, "the permission mode does not allow changing ", key);
    case FsCode::kNotRegularFile:
      return fs_error(code, key, " is not a regular file");
    case FsCode::kNotObserved:
      return fs_error(code, key, " exists already");
    default:
      return fs_error(code, key, " is not as it was when its version was read");
  }
}

FsResult<std::string> read_old(const std::string& key, std::uint64_t bytes_max,
                               const std::stop_token& abort) {
  TRY(FileReader reader, FileReader::open(key, {.bytes_max = bytes_max}));
  return read_whole(std::move(reader), abort);
}

// The old text, for showing a difference. It is a courtesy: what cannot be read is left out.
std::optional<std::string> text_before(const std::string& key, std::uint64_t new_bytes,
                                       std::size_t diff_bytes_max, const std::stop_token& abort) {
  const std::size_t bytes_max = std::min(diff_bytes_max, kDiffBytesMax);
  if (new_bytes >= bytes_max) return std::nullopt;
  const auto old = read_old(key, bytes_max, abort);
  if (!old) return std::nullopt;
  return diff_side(*old, static_cast<std::size_t>(new_bytes), bytes_max);
}

// With what it needs to be the old one's successor.
FsResult<base::Done> finish(const Staging& staging, mode_t mode, bool durable) {
  if (::fchmod(staging.file().get(), mode) != 0) return FsError("write", staging.path(), errno);
  if (durable && ::fsync(staging.file().get()) != 0) return FsError("sync", staging.path(), errno);
  return base::Done{};
}

// Committed already, so nothing from here on is a failure.
void make_names_durable(const std::string& key, std::size_t folders) {
  if (const auto synced = sync_names(key, folders); !synced)
    base::log::warn("a file was written, but may not outlast a loss of power",
                    {{"error", synced.error()}});
}

std::string version_of(const Staging& staging, const std::string& key) {
  const auto info = look_at(staging.file(), key);
  return info ? info->version : "";
}

}  // namespace

std::optional<FsCode> objection_to_write(const WriteFacts& facts, const WriteIntent& intent) {
  if (facts.aborted) return FsCode::kAborted;
  if (!facts.allowed) return FsCode::kSandboxDenied;
  if (facts.existing && facts.existing->kind != EntryKind::kFile) return FsCode::kNotRegularFile;
  if (std::holds_alternative<CreateIfAbsent>(intent) && facts.existing) return FsCode::kNotObserved;
  if (const auto* replace = std::get_if<ReplaceIfVersion>(&intent))
    if (!facts.existing || facts.existing->version != replace->version)
      return FsCode::kStaleVersion;
  return std::nullopt;
}

std::optional<FsCode> objection_to_edit(const WriteFacts& facts,
                                        const std::optional<std::string>& version) {
  if (facts.aborted) return FsCode::kAborted;
  if (!facts.allowed) return FsCode::kSandboxDenied;
  if (!facts.existing) return FsCode::kStaleVersion;
  if (facts.existing->kind != EntryKind::kFile) return FsCode::kNotRegularFile;
  if (version && *version != facts.existing->version) return FsCode::kStaleVersion;
  return std::nullopt;
}

FsResult<FileWrite> FileWrite::begin(Stagings& stagings, const std::string& key,
                                     WriteRequest request, const std::stop_token& abort) {
  TRY(const Seen seen, look(request.permission, key, abort));
  if (const auto code = objection_to_write(seen.facts, request.intent)) return refusal(*code, key);
  if (request.size && *request.size > stagings.limits().file_bytes)
    return fs_error(FsCode::kTooLarge, "a file can be written up to ",
                    std::to_string(stagings.limits().file_bytes), " bytes");
  const auto place = find_place(key);
  if (!place) return FsError(place.error());
  TRY(Staging staging, stagings.begin_file(*place));
  return FileWrite(std::move(request), std::move(staging));
}

FsResult<WriteOutcome> FileWrite::commit(const std::string& key, const std::stop_token& abort) {
  reached(Step::kStaged, key);
  const bool create = std::holds_alternative<CreateIfAbsent>(request_.intent);
  TRY(Seen seen, look(request_.permission, key, abort));
  const WriteFacts& facts = seen.facts;
  const auto code = objection_to_write(facts, request_.intent);
  // Whether a new file meets another is for the kernel to say, when it gets its name.
  const bool undecided = create && facts.existing;
  const bool unseen = code == FsCode::kStaleVersion && left_out(Mechanism::kLastLook);
  if (code && !undecided && !unseen) return refusal(*code, key);

  WriteOutcome outcome{.created = !facts.existing, .target = key};
  outcome.replaced = std::move(seen.existing);
  if (facts.existing && !create)
    outcome.before = text_before(key, staging_.size(), request_.diff_bytes_max, abort);
  const mode_t new_mode = request_.mode.value_or(0666 & ~staging_.umask());
  CHECK_OK(finish(staging_, facts.existing ? facts.existing->mode : new_mode, request_.durable));
  reached(Step::kPublishing, key);
  if (abort.stop_requested()) return aborted("write", key);
  TRY(const std::size_t folders,
      publish(staging_, key, create ? Replace::kNever : Replace::kAllowed));

  reached(Step::kPublished, key);
  if (request_.durable) make_names_durable(key, folders);
  outcome.version = version_of(staging_, key);
  staging_.clear();
  return outcome;
}

FsResult<EditOutcome> edit_file(Stagings& stagings, const std::string& key, EditRequest request,
                                const std::stop_token& abort) {
  TRY(const Seen seen, look(request.permission, key, abort));
  const WriteFacts& facts = seen.facts;
  if (const auto code = objection_to_edit(facts, request.version)) return refusal(*code, key);
  TRY(const std::string stored, read_old(key, kEditBytesMax, abort));
  TRY(EditedText edited, edit_text(stored, request.edit, kEditBytesMax));

  WriteRequest write{.permission = std::move(request.permission),
                     .intent = ReplaceIfVersion{facts.existing->version},
                     .durable = request.durable};
  TRY(FileWrite staged, FileWrite::begin(stagings, key, std::move(write), abort));
  CHECK_OK(staged.write_at(0, edited.stored));
  TRY(WriteOutcome written, staged.commit(key, abort));

  EditOutcome outcome{.version = std::move(written.version),
                      .target = std::move(written.target),
                      .replacements = edited.replacements,
                      .replaced = std::move(written.replaced)};
  const std::size_t bytes_max = std::min(request.diff_bytes_max, kDiffBytesMax);
  if (stored.size() < bytes_max && edited.stored.size() < bytes_max) {
    outcome.before = std::move(edited.before);
    outcome.after = std::move(edited.after);
  }
  return outcome;
}

}  // namespace executor
