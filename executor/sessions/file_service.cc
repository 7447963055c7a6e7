#include "executor/sessions/file_service.h"

#include <algorithm>
#include <utility>

#include "executor/sessions/file_answers.h"
#include "executor/sessions/serving.h"
#include "libs/wire/frames/file_operations.h"

namespace executor {
namespace {

using CallPointer = std::shared_ptr<Call>;

constexpr std::size_t kReplyUsual = 16u << 10;     // Of a reply without its download.
constexpr std::size_t kPageBytesMax = 512u << 10;  // Of entries, so that a page fits into a frame.

wire::FileType type_of(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFile:
      return wire::FileType::kFile;
    case EntryKind::kFolder:
      return wire::FileType::kDirectory;
    case EntryKind::kSymlink:
      return wire::FileType::kSymlink;
    default:
      return wire::FileType::kOther;
  }
}

wire::FileInfo info_of(const FileInfo& info) {
  wire::FileInfo told{.version = info.version,
                      .type = type_of(info.kind),
                      .mode = info.mode,
                      .mtime_ms = info.modified_ms};
  if (info.kind == EntryKind::kFile) told.size = static_cast<std::int64_t>(info.size);
  return told;
}

// Where and for whom.
struct Site {
  Filesystem& files;
  CallPointer call;
  Permission permission;
  std::string cwd;
};

// What stands in a page after as many entries as fit; `bytes`: of those so far.
template <typename Entry>
bool fits(std::size_t& bytes, const Entry& entry) {
  bytes += base::to_text(wire::to_json(entry)).size();
  return bytes <= kPageBytesMax;
}

aio::Task<> run(Site site, wire::ResolveArgs args) {
  const auto found = co_await site.files.resolve(address_of(args.place, site.cwd));
  if (!found) co_return site.call->fail(failure_of(found.error()));
  site.call->reply(wire::ResolveArgs::Ok{found->key, found->display});
}

aio::Task<> run(Site site, wire::StatArgs args) {
  const auto found = co_await site.files.stat(address_of(args.place, site.cwd));
  if (!found) co_return site.call->fail(failure_of(found.error()));
  wire::StatArgs::Ok ok;
  if (*found) ok.info = info_of(**found);
  site.call->reply(ok);
}

aio::Task<> run(Site site, wire::LstatArgs args) {
  const auto found = co_await site.files.lstat(address_of(args.place, site.cwd));
  if (!found) co_return site.call->fail(failure_of(found.error()));
  wire::LstatArgs::Ok ok;
  if (*found) {
    ok.info = info_of((*found)->info);
    ok.info->link_target = (*found)->link_target;
  }
  site.call->reply(ok);
}

// The first piece is read before the reply, so that a file which cannot be read fails, and one that
// is small goes with it.
aio::Task<> read(Site site, wire::Place place, ReadRequest request) {
  constexpr std::size_t kPieceBytes = 256u << 10;
  auto opened = co_await site.files.open(address_of(place, site.cwd), request, kPieceBytes,
                                         site.call->stop());
  if (!opened) co_return site.call->fail(failure_of(opened.error()));
  const auto file = opened->reader;
  FsResult<std::string> piece = std::move(opened->first);
  for (bool replied = false;;) {
    if (!piece) co_return site.call->end(failure_of(piece.error()));
    const bool last = piece->empty() || file->at_end();
    if (!piece->empty() && !co_await site.call->append(*std::move(piece))) co_return;
    if (last) site.call->end();
    if (!std::exchange(replied, true))
      site.call->reply(
          wire::ReadOk{file->info().version, static_cast<std::int64_t>(file->info().size)});
    if (last) co_return;
    piece = co_await site.files.read(file, kPieceBytes, site.call->stop());
  }
}

std::optional<std::uint64_t> unsigned_of(std::optional<std::int64_t> number) {
  if (!number) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

aio::Task<> run(Site site, wire::ReadTextArgs args) {
  ReadRequest request{.as = ReadRequest::As::kText, .bytes_max = unsigned_of(args.bytes_max)};
  return read(std::move(site), std::move(args.place), request);
}

aio::Task<> run(Site site, wire::ReadBytesArgs args) {
  ReadRequest request{.bytes_max = unsigned_of(args.bytes_max),
                      .from = static_cast<std::uint64_t>(args.from),
                      .length = unsigned_of(args.length)};
  return read(std::move(site), std::move(args.place), request);
}

std::optional<std::int64_t> size_of(const ListedEntry& entry) {
  if (!entry.size) return std::nullopt;
  return static_cast<std::int64_t>(*entry.size);
}

aio::Task<> run(Site site, wire::ListDirArgs args) {
  const auto page = co_await site.files.list_directory(
      address_of(args.place, site.cwd), args.after.value_or(""),
      static_cast<std::size_t>(args.page_entries), site.call->stop());
  if (!page) co_return site.call->fail(failure_of(page.error()));
  wire::ListDirArgs::Ok ok{.more = page->more};
  std::size_t bytes = 0;
  for (const ListedEntry& one : page->entries) {
    wire::DirectoryEntry entry{one.name, type_of(one.kind), one.target, one.version, size_of(one)};
    if (!fits(bytes, entry)) {
      ok.more = true;
      break;
    }
    ok.entries.push_back(std::move(entry));
  }
  site.call->reply(ok);
}

aio::Task<> run(Site site, wire::ListTreeArgs args) {
  TreeRequest request{.after = args.after.value_or(""),
                      .entries_max = static_cast<std::size_t>(args.page_entries),
                      .depth_max = static_cast<std::size_t>(args.depth_max),
                      .excludes = args.excludes};
  const auto page = co_await site.files.list_tree(address_of(args.place, site.cwd),
                                                  std::move(request), site.call->stop());
  if (!page) co_return site.call->fail(failure_of(page.error()));
  wire::ListTreeArgs::Ok ok{.more = page->more};
  std::size_t bytes = 0;
  for (const ListedEntry& one : page->entries) {
    wire::TreeEntry entry{one.name, type_of(one.kind), one.version, size_of(one)};
    if (!fits(bytes, entry)) {
      ok.more = true;
      break;
    }
    ok.entries.push_back(std::move(entry));
  }
  site.call->reply(ok);
}

WriteIntent intent_of(const std::optional<wire::WriteIntent>& intent) {
  if (!intent) return Anyhow{};
  if (const auto* replace = std::get_if<wire::ReplaceIfVersion>(&*intent))
    return ReplaceIfVersion{replace->version};
  return CreateIfAbsent{};
}

std::optional<wire::TextBytes> bytes_of(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return wire::TextBytes{static_cast<std::int64_t>(text->size())};
}

// How much there is now, of at most `wanted` bytes of text that are handed back: room for it is
// taken before it is changed.
aio::Task<std::int64_t> text_now(Site site, wire::Place place, std::int64_t wanted) {
  if (wanted == 0) co_return 0;
  const auto found = co_await site.files.stat(address_of(place, site.cwd));
  const std::uint64_t there = found && *found ? (*found)->size : 0;
  co_return std::min(static_cast<std::int64_t>(there), wanted);
}

std::size_t reply_bytes(std::int64_t before, std::int64_t after) {
  return kReplyUsual + static_cast<std::size_t>(before + after);
}

FsError given_up() { return fs_error(FsCode::kAborted, "given up before it was whole"); }

// Piece by piece; `piece` is the first one if it is there already.
aio::Task<FsResult<WriteOutcome>> upload(Site site, FileAddress address, WriteRequest request,
                                         std::optional<wire::Piece> piece) {
  Call& call = *site.call;
  CO_TRY(const auto upload,
         co_await site.files.begin_upload(address, std::move(request), call.stop()));
  for (bool ended = false; !ended; piece.reset()) {
    if (!piece) piece = co_await call.take();
    if (!piece || piece->error) co_return given_up();
    ended = piece->end;
    CO_CHECK_OK(co_await upload->write_at(static_cast<std::uint64_t>(piece->offset),
                                          std::move(piece->bytes)));
  }
  co_return co_await upload->commit(call.stop());
}

aio::Task<> run(Site site, wire::WriteArgs args) {
  Call& call = *site.call;
  const FileAddress address = address_of(args.place, site.cwd);
  // What came whole with its request is done in one go. It has its turn before anything is awaited,
  // so that changes are made in the order in which they were asked for.
  auto piece = call.take_ready();
  std::optional<Turns::Place> turn;
  if (piece && piece->end && !piece->error) {
    auto joined = site.files.line_up(address);
    if (!joined) co_return call.fail(failure_of(joined.error()));
    turn = *std::move(joined);
  }
  const std::int64_t there = co_await text_now(site, args.place, args.diff_bytes_max);
  if (!call.reserve(reply_bytes(there, 0))) co_return;
  WriteRequest request{.permission = site.permission,
                       .intent = intent_of(args.intent),
                       .durable = args.durable,
                       .size = unsigned_of(args.size),
                       .diff_bytes_max = static_cast<std::size_t>(args.diff_bytes_max)};
  if (args.mode) request.mode = static_cast<mode_t>(*args.mode);
  const auto outcome =
      turn ? co_await site.files.write(address, std::move(request), std::move(piece->bytes),
                                       call.stop(), std::move(turn))
           : co_await upload(site, address, std::move(request), std::move(piece));
  if (!outcome) co_return call.fail(failure_of(outcome.error()));
  const wire::WriteArgs::Ok ok{
      outcome->created ? wire::WriteOperation::kCreate : wire::WriteOperation::kUpdate,
      outcome->version, outcome->target, bytes_of(outcome->before)};
  call.reply_whole(ok, outcome->before.value_or(""));
}

aio::Task<> run(Site site, wire::EditTextArgs args) {
  Call& call = *site.call;
  std::string texts;
  for (bool ended = false; !ended;) {
    auto piece = co_await call.take();
    if (!piece) co_return call.fail(failure_of(given_up()));
    ended = piece->end;
    texts += piece->bytes;
    if (texts.size() > 2 * static_cast<std::size_t>(wire::kEditBytesMax))
      co_return call.fail(wire::failure(wire::FailureCode::kFsTooLarge, "the edit is too large"));
  }
  const auto old_bytes = static_cast<std::size_t>(args.old_bytes);
  if (old_bytes > texts.size() ||
      texts.size() - old_bytes > static_cast<std::size_t>(wire::kEditBytesMax))
    co_return call.fail(
        wire::failure(wire::FailureCode::kInvalid, "\"oldBytes\" does not fit what was uploaded"));
  const FileAddress address = address_of(args.place, site.cwd);
  auto turn = site.files.line_up(address);
  if (!turn) co_return call.fail(failure_of(turn.error()));
  const std::int64_t there = co_await text_now(site, args.place, args.diff_bytes_max);
  const auto more = static_cast<std::int64_t>(texts.size() - old_bytes);
  const std::int64_t after = args.replace_all ? args.diff_bytes_max : there + more;
  if (!call.reserve(reply_bytes(there, std::min(after, args.diff_bytes_max)))) co_return;
  EditRequest request{
      .permission = site.permission,
      .edit = {texts.substr(0, old_bytes), texts.substr(old_bytes), args.replace_all},
      .version = args.version,
      .durable = args.durable,
      .diff_bytes_max = static_cast<std::size_t>(args.diff_bytes_max)};
  const auto outcome =
      co_await site.files.edit(address, std::move(request), call.stop(), *std::move(turn));
  if (!outcome) co_return call.fail(failure_of(outcome.error()));
  const wire::EditTextArgs::Ok ok{outcome->version, outcome->target,
                                  static_cast<std::int64_t>(outcome->replacements),
                                  bytes_of(outcome->before), bytes_of(outcome->after)};
  call.reply_whole(ok, outcome->before.value_or("") + outcome->after.value_or(""));
}

aio::Task<> run(Site site, wire::MkdirArgs args) {
  MakeRequest request{.permission = site.permission, .parents = args.parents};
  if (args.mode) request.mode = static_cast<mode_t>(*args.mode);
  const auto made = co_await site.files.make_directory(address_of(args.place, site.cwd),
                                                       std::move(request), site.call->stop());
  if (!made) co_return site.call->fail(failure_of(made.error()));
  site.call->reply(wire::MkdirArgs::Ok{made->created, made->target.key});
}

aio::Task<> run(Site site, wire::RemoveArgs args) {
  RemoveRequest request{.permission = site.permission, .recursive = args.recursive};
  const auto removed = co_await site.files.remove(address_of(args.place, site.cwd),
                                                  std::move(request), site.call->stop());
  if (!removed && !(args.missing_ok && removed.error().fs == FsCode::kNotFound))
    co_return site.call->fail(failure_of(removed.error()));
  site.call->reply(wire::RemoveArgs::Ok{removed.ok()});
}

aio::Task<> run(Site site, wire::RenameArgs args) {
  const std::string cwd = args.cwd.value_or(site.cwd);
  MoveRequest request{.permission = site.permission, .replace = args.replace};
  const auto moved = co_await site.files.rename(FileAddress::of_path(args.from, cwd),
                                                FileAddress::of_path(args.to, cwd),
                                                std::move(request), site.call->stop());
  if (!moved) co_return site.call->fail(failure_of(moved.error()));
  site.call->reply(wire::RenameArgs::Ok{moved->key});
}

aio::Task<> run(Site site, wire::CopyArgs args) {
  const std::string cwd = args.cwd.value_or(site.cwd);
  CopyRequest request{.permission = site.permission,
                      .recursive = args.recursive,
                      .replace = args.replace,
                      .durable = args.durable};
  const auto copied = co_await site.files.copy(FileAddress::of_path(args.from, cwd),
                                               FileAddress::of_path(args.to, cwd),
                                               std::move(request), site.call->stop());
  if (!copied) co_return site.call->fail(failure_of(copied.error()));
  site.call->reply(wire::CopyArgs::Ok{static_cast<std::int64_t>(copied->copied.files),
                                      static_cast<std::int64_t>(copied->copied.bytes),
                                      copied->target.key});
}

wire::WatchLine::Change change_of(Change change) {
  switch (change) {
    case Change::kCreated:
      return wire::WatchLine::Change::kCreated;
    case Change::kWritten:
      return wire::WatchLine::Change::kWritten;
    case Change::kRemoved:
      return wire::WatchLine::Change::kRemoved;
    case Change::kRenamed:
      return wire::WatchLine::Change::kRenamed;
    case Change::kMode:
      return wire::WatchLine::Change::kMode;
  }
  return wire::WatchLine::Change::kWritten;
}

aio::Task<> tell_changes(CallPointer call, std::shared_ptr<Watch> watch) {
  for (;;) {
    std::string lines;
    for (const WatchEvent& event : watch->take())
      lines += base::to_text(wire::to_json(
                   wire::WatchLine{.change = change_of(event.change), .path = event.name})) +
               "\n";
    if (const std::size_t lost = watch->take_lost())
      lines +=
          base::to_text(wire::to_json(wire::WatchLine{.lost = static_cast<std::int64_t>(lost)})) +
          "\n";
    if (lines.empty() && watch->stopped()) co_return call->end();
    if (lines.empty())
      co_await watch->wait();
    else if (!co_await call->append(std::move(lines)))
      co_return;
  }
}

aio::Task<> run(Site site, wire::WatchArgs args) {
  const auto watch = co_await site.files.watch(address_of(args.place, site.cwd), args.recursive);
  if (!watch) co_return site.call->fail(failure_of(watch.error()));
  site.call->reply(wire::WatchArgs::Ok{});
  // Nobody may take its lines for long: that it is wanted no more shows elsewhere then.
  co_await aio::race(aio::both(Watch::run(*watch), tell_changes(site.call, *watch)),
                     site.call->until_unwanted());
  (*watch)->stop();
}

}  // namespace

std::optional<aio::Task<>> FileService::serve(const std::shared_ptr<Call>& call,
                                              Permission permission) {
  Site site{files_, call, std::move(permission), cwd_};
  return serve_one_of<wire::ResolveArgs, wire::StatArgs, wire::LstatArgs, wire::ReadTextArgs,
                      wire::ReadBytesArgs, wire::ListDirArgs, wire::ListTreeArgs, wire::WriteArgs,
                      wire::EditTextArgs, wire::MkdirArgs, wire::RemoveArgs, wire::RenameArgs,
                      wire::CopyArgs, wire::WatchArgs>(std::move(site));
}

}  // namespace executor
