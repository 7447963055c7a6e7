#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>

#include "executor/files/watch.h"
#include "executor/filesystem/at_hand.h"
#include "executor/filesystem/change.h"
#include "executor/filesystem/copy.h"
#include "executor/filesystem/failure.h"
#include "executor/filesystem/identity.h"
#include "executor/filesystem/listing.h"
#include "executor/filesystem/read.h"
#include "executor/filesystem/stagings.h"
#include "executor/filesystem/stat.h"
#include "executor/filesystem/turns.h"
#include "executor/filesystem/write.h"
#include "libs/aio/background.h"

namespace executor {

class Filesystem;

// A file that a caller is writing piece by piece. On the loop; its calls may overlap, and are done
// in the order in which they began. Dropped before its commit, it leaves nothing and changed
// nothing.
class Upload {
 public:
  Upload(Filesystem& filesystem, FileAddress address, std::unique_ptr<FileWrite> write);
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // Up to a byte behind the last one so far, or over what came already.
  aio::Task<FsResult<base::Done>> write_at(std::uint64_t offset, std::string bytes);
  // Once only. It takes its place among the changes of the file at once.
  aio::Task<FsResult<WriteOutcome>> commit(std::stop_token abort);

 private:
  Filesystem& filesystem_;
  FileAddress address_;
  std::unique_ptr<FileWrite> write_;
  Turns order_;
};

// The files of the sandbox, as harnesses work with them: any number of clients, one after the other
// where they change the same file. Runs on the loop, and does in the background what may
// block. A change can be aborted, by a stop asked for on the loop, until it is committed: kAborted.
// Whoever awaits keeps this, and what he passed, alive.
class Filesystem {
 public:
  Filesystem(aio::Executor executor, aio::Background& background,
             std::shared_ptr<Stagings> stagings, AtHand at_hand = {});
  Filesystem(const Filesystem&) = delete;
  Filesystem& operator=(const Filesystem&) = delete;

  aio::Task<FsResult<Target>> resolve(FileAddress address);
  aio::Task<FsResult<std::optional<FileInfo>>> stat(FileAddress address);
  aio::Task<FsResult<std::optional<EntryInfo>>> lstat(FileAddress address);

  // With its first piece.
  aio::Task<FsResult<OpenedFile>> open(FileAddress address, ReadRequest request,
                                       std::size_t bytes_max, std::stop_token abort);
  // The next piece of an open file, one call at a time; empty at the end.
  aio::Task<FsResult<std::string>> read(std::shared_ptr<FileReader> file, std::size_t bytes_max,
                                        std::stop_token abort);
  aio::Task<FsResult<Page>> list_directory(FileAddress address, std::string after,
                                           std::size_t entries_max, std::stop_token abort);
  aio::Task<FsResult<Page>> list_tree(FileAddress address, TreeRequest request,
                                      std::stop_token abort);
  // The caller runs it (Watch::run) and stops it.
  aio::Task<FsResult<std::shared_ptr<Watch>>> watch(FileAddress address, bool recursive);

  // A place among the changes of the file that `address` spells, for one that is still to be asked
  // for. Changes are made in the order of their places, and take one when they have none.
  FsResult<Turns::Place> line_up(const FileAddress& address);

  aio::Task<FsResult<WriteOutcome>> write(FileAddress address, WriteRequest request,
                                          std::string content, std::stop_token abort,
                                          std::optional<Turns::Place> place = {});
  aio::Task<FsResult<std::shared_ptr<Upload>>> begin_upload(FileAddress address,
                                                            WriteRequest request,
                                                            std::stop_token abort);
  aio::Task<FsResult<EditOutcome>> edit(FileAddress address, EditRequest request,
                                        std::stop_token abort,
                                        std::optional<Turns::Place> place = {});
  // The target, and whether it was made.
  struct MadeDirectory {
    Target target;
    bool created = false;
  };
  aio::Task<FsResult<MadeDirectory>> make_directory(FileAddress address, MakeRequest request,
                                                    std::stop_token abort);
  // How many entries went. Aborted half-way, some have gone.
  aio::Task<FsResult<std::uint64_t>> remove(FileAddress address, RemoveRequest request,
                                            std::stop_token abort);
  // Where it is now.
  aio::Task<FsResult<Target>> rename(FileAddress from, FileAddress to, MoveRequest request,
                                     std::stop_token abort);
  struct CopiedTo {
    Target target;
    Copied copied;
  };
  aio::Task<FsResult<CopiedTo>> copy(FileAddress from, FileAddress to, CopyRequest request,
                                     std::stop_token abort);

 private:
  friend class Upload;
  using Locator = FsResult<Target> (*)(const FileAddress&);
  // What a change came to, and where; its turn lasts as long as its place.
  template <typename Outcome>
  struct InTurn {
    Turns::Place place;
    Target target;
    Outcome outcome;
  };
  template <typename Work>
  using OutcomeOf = typename std::invoke_result_t<Work, const Target&>::Value;
  struct TurnOfTwo {
    Turns::Place first;
    std::optional<Turns::Place> second;
    Target from, to;
  };

  aio::Task<FsResult<Target>> locate_with(Locator locator, FileAddress address);
  // Calls `work` in the background, when it is this change's turn, with where its address leads
  // then: in one go, so that a change costs one way there and back.
  template <typename Work>
  aio::Task<FsResult<InTurn<OutcomeOf<Work>>>> in_turn(Locator locator, FileAddress address,
                                                       std::stop_token abort, Work work,
                                                       std::optional<Turns::Place> place = {});
  aio::Task<FsResult<TurnOfTwo>> take_turn_of_two(FileAddress from, FileAddress to,
                                                  std::stop_token abort);
  aio::Executor executor_;
  aio::Background& background_;
  std::shared_ptr<Stagings> stagings_;
  AtHand at_hand_;
  Turns turns_;
};

}  // namespace executor
