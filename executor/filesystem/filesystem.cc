#include "executor/filesystem/filesystem.h"

#include <algorithm>
#include <cerrno>

namespace executor {
namespace {

// How often the address of a change may lead elsewhere each time it is its turn.
constexpr int kMovesMax = 8;

FsError too_many(const std::string& path) {
  return fs_busy("too many changes wait already, of ", path, " or of all files; try again");
}

FsResult<OpenedFile> open_file(const FileAddress& address, const ReadRequest& request,
                               std::size_t bytes_max, const std::stop_token& abort) {
  TRY(const Target target, locate(address));
  TRY(FileReader reader, FileReader::open(target.key, request));
  TRY(std::string first, reader.next(bytes_max, abort));
  return OpenedFile{std::make_shared<FileReader>(std::move(reader)), std::move(first)};
}

FsResult<Watch::Folders> find_folders(const FileAddress& address, bool recursive) {
  TRY(const Target target, locate(address));
  auto folders = Watch::Folders::find(target.key, recursive, true);
  if (folders) return *std::move(folders);
  const FsError failed(folders.error());
  if (folders.error().error_number != ENOTDIR) return failed;
  return fs_error(FsCode::kNotDirectory, target.key, " is not a folder");
}

FsResult<std::unique_ptr<FileWrite>> begin_write(Stagings& stagings, const FileAddress& address,
                                                 WriteRequest request,
                                                 const std::stop_token& abort) {
  TRY(const Target target, locate(address));
  TRY(FileWrite write, FileWrite::begin(stagings, target.key, std::move(request), abort));
  return std::make_unique<FileWrite>(std::move(write));
}

FsResult<WriteOutcome> write_whole(Stagings& stagings, const std::string& key, WriteRequest request,
                                   std::string_view content, const std::stop_token& abort) {
  TRY(FileWrite write, FileWrite::begin(stagings, key, std::move(request), abort));
  for (std::uint64_t at = 0; at < content.size(); at += FileReader::kPieceBytesMax) {
    if (abort.stop_requested()) return aborted("write", key);
    CHECK_OK(write.write_at(at, content.substr(at, FileReader::kPieceBytesMax)));
  }
  return write.commit(key, abort);
}

}  // namespace

Upload::Upload(Filesystem& filesystem, FileAddress address, std::unique_ptr<FileWrite> write)
    : filesystem_(filesystem),
      address_(std::move(address)),
      write_(std::move(write)),
      order_(filesystem.executor_) {}

// Its own thread of background work is done when an await returns, so nothing outlives the upload.
aio::Task<FsResult<base::Done>> Upload::write_at(std::uint64_t offset, std::string bytes) {
  auto place = order_.join("");
  if (!place) co_return too_many(address_.path);
  static_cast<void>(co_await place->wait({}));
  auto work = [this, offset, &bytes] { return write_->write_at(offset, bytes); };
  co_return co_await filesystem_.background_.run(std::move(work));
}

aio::Task<FsResult<WriteOutcome>> Upload::commit(std::stop_token abort) {
  auto place = order_.join("");
  if (!place) co_return too_many(address_.path);
  if (!co_await place->wait(abort)) co_return aborted("write", address_.path);
  auto work = [this, &abort](const Target& target) { return write_->commit(target.key, abort); };
  CO_TRY(auto committed, co_await filesystem_.in_turn(locate, address_, abort, work));
  co_return std::move(committed.outcome);
}

Filesystem::Filesystem(aio::Executor executor, aio::Background& background,
                       std::shared_ptr<Stagings> stagings, AtHand at_hand)
    : executor_(executor),
      background_(background),
      stagings_(std::move(stagings)),
      at_hand_(std::move(at_hand)),
      turns_(executor) {}

aio::Task<FsResult<Target>> Filesystem::locate_with(Locator locator, FileAddress address) {
  auto work = [locator, address = std::move(address)] { return locator(address); };
  co_return co_await background_.run(std::move(work));
}

FsResult<Turns::Place> Filesystem::line_up(const FileAddress& address) {
  TRY(const std::string key, absolute_path(address));
  std::optional<Turns::Place> place = turns_.join(key);
  if (!place) return too_many(key);
  return *std::move(place);
}

template <typename Work>
aio::Task<FsResult<Filesystem::InTurn<Filesystem::OutcomeOf<Work>>>> Filesystem::in_turn(
    Locator locator, FileAddress address, std::stop_token abort, Work work,
    std::optional<Turns::Place> place) {
  CO_TRY(std::string key, absolute_path(address));
  for (int moves = 0; moves <= kMovesMax; ++moves) {
    if (moves > 0 || !place) {
      // In the next line before the last one is left: so those that came behind stay behind.
      std::optional<Turns::Place> next = turns_.join(key);
      if (!next) co_return too_many(key);
      place = std::move(next);
    }
    if (!co_await place->wait(abort)) co_return aborted("change", key);
    using Worked = std::pair<Target, std::optional<OutcomeOf<Work>>>;
    // Closed in the background too, once the outcome is on its way.
    auto work_there = [&, replaced = base::Fd()]() mutable -> FsResult<Worked> {
      TRY(Target target, locator(address));
      if (target.key != key) return Worked(std::move(target), std::nullopt);
      TRY(auto outcome, work(target));
      if constexpr (requires { outcome.replaced; }) replaced = std::move(outcome.replaced);
      return Worked(std::move(target), std::move(outcome));
    };
    CO_TRY(Worked worked, co_await background_.run(std::move(work_there)));
    auto& [target, outcome] = worked;
    if (outcome)
      co_return InTurn<OutcomeOf<Work>>{*std::move(place), std::move(target), *std::move(outcome)};
    key = target.key;
  }
  co_return fs_error(FsCode::kIoError, "where ", address.path, " leads changes all the time");
}

aio::Task<FsResult<Filesystem::TurnOfTwo>> Filesystem::take_turn_of_two(FileAddress from,
                                                                        FileAddress to,
                                                                        std::stop_token abort) {
  CO_TRY(Target source, co_await locate_with(locate_entry, std::move(from)));
  CO_TRY(Target target, co_await locate_with(locate_entry, std::move(to)));
  // Both at the same moment, so that no two changes wait for each other.
  auto first = turns_.join(source.key);
  if (!first) co_return too_many(source.key);
  std::optional<Turns::Place> second;
  if (target.key != source.key) {
    second = turns_.join(target.key);
    if (!second) co_return too_many(target.key);
  }
  if (!co_await first->wait(abort)) co_return aborted("change", source.key);
  if (second && !co_await second->wait(abort)) co_return aborted("change", target.key);
  co_return TurnOfTwo{*std::move(first), std::move(second), std::move(source), std::move(target)};
}

aio::Task<FsResult<Target>> Filesystem::resolve(FileAddress address) {
  co_return co_await locate_with(locate, std::move(address));
}

aio::Task<FsResult<std::optional<FileInfo>>> Filesystem::stat(FileAddress address) {
  if (auto info = at_hand_.stat(address)) co_return std::move(info);
  auto work = [address = std::move(address)] { return stat_target(address); };
  co_return co_await background_.run(std::move(work));
}

aio::Task<FsResult<std::optional<EntryInfo>>> Filesystem::lstat(FileAddress address) {
  auto work = [address = std::move(address)] { return stat_entry(address); };
  co_return co_await background_.run(std::move(work));
}

aio::Task<FsResult<OpenedFile>> Filesystem::open(FileAddress address, ReadRequest request,
                                                 std::size_t bytes_max, std::stop_token abort) {
  if (auto opened = at_hand_.open(address, request, bytes_max)) co_return *std::move(opened);
  auto work = [address = std::move(address), request, bytes_max, abort] {
    return open_file(address, request, bytes_max, abort);
  };
  co_return co_await background_.run(std::move(work));
}

aio::Task<FsResult<std::string>> Filesystem::read(std::shared_ptr<FileReader> file,
                                                  std::size_t bytes_max, std::stop_token abort) {
  auto work = [file = std::move(file), bytes_max, abort] { return file->next(bytes_max, abort); };
  co_return co_await background_.run(std::move(work));
}

aio::Task<FsResult<Page>> Filesystem::list_directory(FileAddress address, std::string after,
                                                     std::size_t entries_max,
                                                     std::stop_token abort) {
  entries_max = std::clamp<std::size_t>(entries_max, 1, kPageEntriesMax);
  auto work = [address = std::move(address), after = std::move(after), entries_max,
               abort]() -> FsResult<Page> {
    TRY(const Target target, locate(address));
    return executor::list_directory(target.key, after, entries_max, abort);
  };
  co_return co_await background_.run(std::move(work));
}

aio::Task<FsResult<Page>> Filesystem::list_tree(FileAddress address, TreeRequest request,
                                                std::stop_token abort) {
  request.entries_max = std::clamp<std::size_t>(request.entries_max, 1, kPageEntriesMax);
  request.depth_max = std::clamp<std::size_t>(request.depth_max, 1, kTreeDepthMax);
  auto work = [address = std::move(address), request = std::move(request),
               abort]() -> FsResult<Page> {
    TRY(const Target target, locate(address));
    return executor::list_tree(target.key, request, abort);
  };
  co_return co_await background_.run(std::move(work));
}

aio::Task<FsResult<std::shared_ptr<Watch>>> Filesystem::watch(FileAddress address, bool recursive) {
  auto work = [address = std::move(address), recursive] {
    return find_folders(address, recursive);
  };
  CO_TRY(Watch::Folders folders, co_await background_.run(std::move(work)));
  co_return std::make_shared<Watch>(executor_, std::move(folders));
}

aio::Task<FsResult<WriteOutcome>> Filesystem::write(FileAddress address, WriteRequest request,
                                                    std::string content, std::stop_token abort,
                                                    std::optional<Turns::Place> place) {
  auto work = [&](const Target& target) {
    return write_whole(*stagings_, target.key, std::move(request), content, abort);
  };
  CO_TRY(auto written, co_await in_turn(locate, std::move(address), abort, work, std::move(place)));
  co_return std::move(written.outcome);
}

aio::Task<FsResult<std::shared_ptr<Upload>>> Filesystem::begin_upload(FileAddress address,
                                                                      WriteRequest request,
                                                                      std::stop_token abort) {
  auto work = [stagings = stagings_, address, request = std::move(request), abort] {
    return begin_write(*stagings, address, request, abort);
  };
  CO_TRY(auto write, co_await background_.run(std::move(work)));
  co_return std::make_shared<Upload>(*this, std::move(address), std::move(write));
}

aio::Task<FsResult<EditOutcome>> Filesystem::edit(FileAddress address, EditRequest request,
                                                  std::stop_token abort,
                                                  std::optional<Turns::Place> place) {
  auto work = [&](const Target& target) {
    return edit_file(*stagings_, target.key, std::move(request), abort);
  };
  CO_TRY(auto edited, co_await in_turn(locate, std::move(address), abort, work, std::move(place)));
  co_return std::move(edited.outcome);
}

aio::Task<FsResult<Filesystem::MadeDirectory>> Filesystem::make_directory(FileAddress address,
                                                                          MakeRequest request,
                                                                          std::stop_token abort) {
  auto work = [&request](const Target& target) {
    return executor::make_directory(target.key, request);
  };
  CO_TRY(auto made, co_await in_turn(locate, std::move(address), abort, work));
  co_return MadeDirectory{std::move(made.target), made.outcome};
}

aio::Task<FsResult<std::uint64_t>> Filesystem::remove(FileAddress address, RemoveRequest request,
                                                      std::stop_token abort) {
  auto work = [&](const Target& target) { return remove_pass(target.key, request, abort); };
  CO_TRY(const auto begun, co_await in_turn(locate_entry, std::move(address), abort, work));
  std::uint64_t removed = begun.outcome.entries;
  for (bool all = begun.outcome.all; !all;) {
    const auto pass = co_await background_.run([&] { return work(begun.target); });
    // Somebody else took the rest.
    if (!pass && removed > 0 && pass.error().fs == FsCode::kNotFound) co_return removed;
    if (!pass) co_return pass.error();
    removed += pass->entries;
    all = pass->all;
  }
  co_return removed;
}

aio::Task<FsResult<Target>> Filesystem::rename(FileAddress from, FileAddress to,
                                               MoveRequest request, std::stop_token abort) {
  CO_TRY(TurnOfTwo turn, co_await take_turn_of_two(std::move(from), std::move(to), abort));
  auto work = [from = turn.from.key, to = turn.to.key, request = std::move(request)] {
    return move_to(from, to, request);
  };
  CO_CHECK_OK(co_await background_.run(std::move(work)));
  co_return std::move(turn.to);
}

aio::Task<FsResult<Filesystem::CopiedTo>> Filesystem::copy(FileAddress from, FileAddress to,
                                                           CopyRequest request,
                                                           std::stop_token abort) {
  CO_TRY(TurnOfTwo turn, co_await take_turn_of_two(std::move(from), std::move(to), abort));
  auto work = [stagings = stagings_, from = turn.from.key, to = turn.to.key,
               request = std::move(request),
               abort] { return copy_to(*stagings, from, to, request, abort); };
  CO_TRY(const Copied copied, co_await background_.run(std::move(work)));
  co_return CopiedTo{std::move(turn.to), copied};
}

}  // namespace executor
