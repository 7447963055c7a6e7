#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>

#include "executor/confine/permission.h"
#include "executor/filesystem/failure.h"
#include "executor/filesystem/staging.h"
#include "executor/filesystem/stagings.h"
#include "executor/filesystem/text.h"
#include "executor/filesystem/version.h"
#include "libs/base/fd.h"

// Files that are written or edited: readers see the old content or the new, and until a commit
// nothing has changed.
namespace executor {

struct Anyhow {};
struct CreateIfAbsent {};
struct ReplaceIfVersion {
  std::string version;
};
using WriteIntent = std::variant<Anyhow, CreateIfAbsent, ReplaceIfVersion>;

// What a change of a file depends on, at one moment.
struct WriteFacts {
  bool aborted = false;
  bool allowed = true;  // By the permission mode.
  std::optional<FileInfo> existing;
};
// Why not, by the first row that matches; nothing when it may go on.
std::optional<FsCode> objection_to_write(const WriteFacts& facts, const WriteIntent& intent);
std::optional<FsCode> objection_to_edit(const WriteFacts& facts,
                                        const std::optional<std::string>& version);

struct WriteRequest {
  Permission permission;
  WriteIntent intent = Anyhow{};
  // Of a file that is new, exactly; one that is there keeps its own. Without: 0666 less the umask.
  std::optional<mode_t> mode = {};
  bool durable = false;                    // Outlasts a loss of power once it is committed.
  std::optional<std::uint64_t> size = {};  // Refused at once when it is too large.
  // The old text is handed back when it and the new content are shorter; kDiffBytesMax at most.
  std::size_t diff_bytes_max = 0;
};

struct WriteOutcome {
  bool created = false;
  std::string version;  // As the next look will show, if nobody else writes.
  std::string target;
  std::optional<std::string> before = {};  // With LF newlines.
  // What it took the place of. Whoever lets go of that last waits until as much as the kernel was
  // writing of it has reached the disk, so better when nobody waits for him.
  base::Fd replaced = {};
};

// One file on its way. Its calls block; one at a time. Given up, it leaves nothing.
class FileWrite {
 public:
  // Refuses what would be refused at the commit anyway, as things are now.
  static FsResult<FileWrite> begin(Stagings& stagings, const std::string& key, WriteRequest request,
                                   const std::stop_token& abort);

  // Up to a byte behind the last one so far, or over what came already.
  FsResult<base::Done> write_at(std::uint64_t offset, std::string_view bytes) {
    return staging_.write_at(offset, bytes);
  }
  // It becomes the content of `key`, which is where the address leads by now. Once only.
  FsResult<WriteOutcome> commit(const std::string& key, const std::stop_token& abort);

 private:
  FileWrite(WriteRequest request, Staging staging)
      : request_(std::move(request)), staging_(std::move(staging)) {}

  WriteRequest request_;
  Staging staging_;
};

struct EditRequest {
  Permission permission;
  TextEdit edit;
  std::optional<std::string> version = {};
  bool durable = false;
  std::size_t diff_bytes_max = 0;
};

struct EditOutcome {
  std::string version, target;
  std::size_t replacements = 0;
  std::optional<std::string> before = {}, after = {};
  base::Fd replaced = {};  // As of a write.
};

// What can be edited: all of it is in memory then, in several forms.
inline constexpr std::uint64_t kEditBytesMax = 64u << 20;
// Blocks. A file that another has changed between the look and the commit is kStaleVersion.
FsResult<EditOutcome> edit_file(Stagings& stagings, const std::string& key, EditRequest request,
                                const std::stop_token& abort);

}  // namespace executor
