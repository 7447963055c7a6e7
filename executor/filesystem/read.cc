#include "executor/filesystem/read.h"

#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "executor/filesystem/text.h"
#include "executor/filesystem/walk.h"
#include "libs/base/utf8.h"

namespace executor {
namespace {

constexpr std::size_t kCharacterBytesMax = 4;
constexpr std::size_t kRoomBytesMin = 4096;

FsError too_large(const std::string& path, std::uint64_t bytes_max) {
  return fs_error(FsCode::kTooLarge, path, " is larger than the ", std::to_string(bytes_max),
                  " bytes asked for");
}

FsError not_text(const std::string& path) {
  return fs_error(FsCode::kNotText, path, " is not UTF-8 text");
}

}  // namespace

FsResult<FileReader> FileReader::open(const std::string& key, const ReadRequest& request) {
  const auto place = open_without_links(key, O_PATH);
  if (!place) return FsError(place.error());
  return open(*place, key, request);
}

FsResult<FileReader> FileReader::open(const base::Fd& place, const std::string& key,
                                      const ReadRequest& request) {
  FileReader reader;
  reader.path_ = key;
  reader.request_ = request;
  auto info = look_at(place, key);
  if (!info) return FsError(info.error());
  reader.info_ = *std::move(info);
  if (reader.info_.kind == EntryKind::kSymlink) return FsError("read", key, ELOOP);
  if (reader.info_.kind != EntryKind::kFile)
    return fs_error(FsCode::kNotRegularFile, key, " is not a regular file");
  const std::uint64_t size = reader.info_.size;
  const std::uint64_t ahead = size > request.from ? size - request.from : 0;
  if (request.bytes_max && std::min(ahead, request.length.value_or(ahead)) > *request.bytes_max)
    return too_large(key, *request.bytes_max);
  auto file = reopen(place, key, O_RDONLY);
  if (!file) return FsError(file.error());
  reader.file_ = *std::move(file);
  return reader;
}

// As many bytes as there are, up to `bytes`: fewer only at the end.
FsResult<std::string> FileReader::read(std::size_t bytes) {
  if (request_.length) bytes = std::min<std::uint64_t>(bytes, *request_.length - read_);
  std::string content(bytes, '\0');
  std::size_t filled = 0;
  while (filled < content.size()) {
    const auto at = static_cast<off_t>(request_.from + read_);
    const iovec room{content.data() + filled, content.size() - filled};
    const ssize_t got = ::preadv2(file_.get(), &room, 1, at, flags_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FsError("read", path_, errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    read_ += static_cast<std::uint64_t>(got);
  }
  content.resize(filled);
  return content;
}

FsResult<std::string> FileReader::next(std::size_t bytes_max, const std::stop_token& abort) {
  if (abort.stop_requested()) return aborted("read", path_);
  const bool first = read_ == 0;
  // No more room than there is left to read, as far as is known; its end shows in the same piece.
  const std::uint64_t ahead = std::max(info_.size, request_.from + read_) - request_.from - read_;
  bytes_max = std::min<std::uint64_t>(bytes_max, std::max<std::uint64_t>(ahead, kRoomBytesMin) + 1);
  const bool text = request_.as == ReadRequest::As::kText;
  // Room for a whole character; and the first piece of a text holds all of the sample that is
  // looked at for zero bytes.
  const std::size_t least = text ? first ? kNulSampleBytes : kCharacterBytesMax : 1;
  bytes_max = std::clamp(bytes_max, least, kPieceBytesMax);
  // One byte more than the bound tells that there is more than that.
  const std::uint64_t left = request_.bytes_max ? *request_.bytes_max - read_ : kPieceBytesMax;
  if (left < bytes_max) bytes_max = static_cast<std::size_t>(left) + 1;
  TRY(std::string bytes, read(bytes_max));
  if (request_.bytes_max && read_ > *request_.bytes_max)
    return too_large(path_, *request_.bytes_max);
  const bool came_short = bytes.size() < bytes_max;
  at_end_ = came_short && !text;
  if (!text) return bytes;
  if (first && has_nul(std::string_view(bytes).substr(0, kNulSampleBytes)))
    return fs_error(FsCode::kNotText, path_, " has a zero byte near its beginning");
  return next_text(std::move(bytes), came_short);
}

FsResult<std::string> FileReader::next_from_memory(std::size_t bytes_max) {
  flags_ = RWF_NOWAIT;
  auto piece = next(bytes_max, {});
  flags_ = 0;
  return piece;
}

FsResult<std::string> FileReader::next_text(std::string bytes, bool last) {
  std::string text = std::move(begun_) + std::move(bytes);
  const base::Utf8Prefix whole = base::utf8_prefix(text);
  begun_ = text.substr(whole.bytes);
  text.resize(whole.bytes);
  // Good characters before a bad byte are handed out first.
  if (text.empty() && !begun_.empty() && (whole.broken || last)) return not_text(path_);
  at_end_ = last && begun_.empty();
  return text;
}

FsResult<std::string> read_whole(FileReader reader, const std::stop_token& abort) {
  std::string content;
  while (!reader.at_end()) {
    TRY(const std::string piece, reader.next(FileReader::kPieceBytesMax, abort));
    content += piece;
  }
  return content;
}

}  // namespace executor
