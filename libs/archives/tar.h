#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/archives/compression.h"

// Tar archives in the pax format (POSIX.1-2001), entry by entry. Names are bytes: those that are
// not UTF-8 are kept as they are.
namespace archives {

enum class EntryKind { kFile, kFolder, kSymlink, kHardLink, kOther };

// Where a file has data; what lies between is a hole.
struct Extent {
  std::uint64_t offset = 0, bytes = 0;
};

struct Entry {
  std::string path;
  EntryKind kind = EntryKind::kOther;
  mode_t mode = 0;  // With set-id and sticky.
  std::timespec modified = {};
  std::uint64_t size = 0;         // Of files, holes included.
  std::string link = {};          // Where a link leads; for a hard link, by an entry's path.
  std::vector<Extent> data = {};  // To be written, in order; empty: all of it is data.
  bool sparse = false;            // `data` counts, even if there is none.
};

// Both of them: one thread, from the first call to the destructor.
class TarWriter {
 public:
  explicit TarWriter(Sink sink);
  ~TarWriter();
  TarWriter(const TarWriter&) = delete;
  TarWriter& operator=(const TarWriter&) = delete;

  // What was missing of the entry before it is filled up.
  Result<base::Done> begin(const Entry& entry);
  // The next bytes of the file, zeros for its holes.
  Result<base::Done> write(std::string_view bytes);
  Result<base::Done> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What stands before an entry's content may take so many bytes: its names, its times, its holes.
inline constexpr std::size_t kHeaderBytesMax = 1u << 20;

class TarReader {
 public:
  // Nothing of `source`: the end.
  using Blocks = std::function<Result<std::string_view>()>;
  explicit TarReader(Blocks source);
  ~TarReader();
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  // The next entry, or nothing at the end. What was not read of the one before is passed over.
  Result<std::optional<Entry>> next();
  struct Block {
    std::uint64_t offset = 0;
    std::string_view bytes;
  };
  // The next data of the entry, which stays until the next call.
  Result<std::optional<Block>> block();

 private:
  struct State;
  Failure failure() const;
  std::unique_ptr<State> state_;
};

}  // namespace archives
