#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "executor/envd/rest.h"
#include "executor/files/download_plan.h"
#include "executor/files/file_error.h"
#include "executor/files/gzip.h"
#include "libs/base/time.h"

namespace executor {
namespace {

constexpr std::size_t kChunkBytes = 256u << 10;

struct OpenFile {
  base::Fd file;
  FileFacts facts;
  DownloadPlan plan = {};
  std::string whole = {};  // What the plan wants, when it fits in one chunk.
};

FileResult<OpenFile> open_file(const std::string& path) {
  // Without O_NONBLOCK, opening a named pipe would wait for its other end.
  OpenFile opened{base::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), {}};
  if (!opened.file) return FileError("read", path, errno == ENOTDIR ? ENOENT : errno);
  struct stat found{};
  if (::fstat(opened.file.get(), &found) != 0) return FileError("read", path, errno);
  if (S_ISDIR(found.st_mode)) return FileError("read", path, EISDIR);
  if (!S_ISREG(found.st_mode)) return FileError("read as a file", path, EINVAL);
  const auto& at = found.st_mtim;
  opened.facts.size = found.st_size;
  opened.facts.modified =
      base::WallTime(base::Milliseconds(at.tv_sec * 1000 + at.tv_nsec / 1'000'000));
  opened.facts.etag = "\"" + std::to_string(found.st_ino) + "-" + std::to_string(at.tv_sec) + "." +
                      std::to_string(at.tv_nsec) + "-" + std::to_string(found.st_size) + "\"";
  return opened;
}

FileResult<std::string> read_at(int file, std::int64_t offset, std::int64_t length,
                                const std::string& path) {
  std::string bytes(std::min<std::size_t>(static_cast<std::size_t>(length), kChunkBytes), '\0');
  for (;;) {
    const ssize_t got = ::pread(file, bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("read", path, errno);
    bytes.resize(static_cast<std::size_t>(got));
    return bytes;
  }
}

FileResult<OpenFile> open_for(const DownloadAsk& ask, const std::string& path) {
  TRY(OpenFile opened, open_file(path));
  opened.plan = plan_download(ask, opened.facts);
  const std::int64_t length = opened.plan.length;
  if (length > 0 && static_cast<std::size_t>(length) <= kChunkBytes) {
    TRY(opened.whole, read_at(opened.file.get(), opened.plan.offset, length, path));
  }
  return opened;
}

DownloadAsk ask_of(const aio::HttpHead& head) {
  return {.accept_encoding = head.field("Accept-Encoding"),
          .range = head.field("Range"),
          .if_range = head.field("If-Range"),
          .if_match = head.field("If-Match"),
          .if_none_match = head.field("If-None-Match"),
          .if_modified_since = head.field("If-Modified-Since"),
          .if_unmodified_since = head.field("If-Unmodified-Since")};
}

aio::HttpFields fields_of(const DownloadPlan& plan, const FileFacts& facts,
                          const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  aio::HttpFields fields = {{"Content-Type", content_type_of(name)},
                            {"Content-Disposition", content_disposition(name)},
                            {"Last-Modified", base::to_http_date(facts.modified)},
                            {"ETag", facts.etag},
                            {"Vary", "Accept-Encoding"}};
  if (plan.gzip) {
    fields.emplace_back("Content-Encoding", "gzip");
  } else {
    fields.emplace_back("Accept-Ranges", "bytes");
  }
  if (plan.status == 206)
    fields.emplace_back("Content-Range", "bytes " + std::to_string(plan.offset) + "-" +
                                             std::to_string(plan.offset + plan.length - 1) + "/" +
                                             std::to_string(facts.size));
  return fields;
}

// A body that does not fit in one chunk. One that ends early, because the file shrank or a read
// failed, is broken off, so that nobody takes it for the whole.
aio::Task<> send_in_parts(std::shared_ptr<Daemon> daemon, Exchange exchange, int file,
                          DownloadPlan plan, std::string path, aio::HttpFields fields) {
  if (!co_await exchange->begin(plan.status, std::move(fields))) co_return;
  std::optional<Gzip> gzip;
  if (plan.gzip) gzip.emplace();
  std::int64_t sent = 0;
  while (sent < plan.length) {
    auto piece =
        co_await daemon->background.run([file, at = plan.offset + sent, left = plan.length - sent,
                                         path] { return read_at(file, at, left, path); });
    if (!piece || piece->empty()) {
      exchange->abort();
      co_return;
    }
    sent += static_cast<std::int64_t>(piece->size());
    std::string bytes = *std::move(piece);
    if (gzip) bytes = gzip->add(bytes);
    if (!bytes.empty() && !co_await exchange->write(std::move(bytes))) co_return;
  }
  if (gzip && !co_await exchange->write(gzip->finish())) co_return;
  static_cast<void>(co_await exchange->finish());
}

aio::Task<> send_at_once(Exchange exchange, DownloadPlan plan, std::string body,
                         aio::HttpFields fields) {
  if (plan.gzip) {
    Gzip gzip;
    body = gzip.add(body);
    body += gzip.finish();
  }
  aio::HttpReply reply{plan.status, std::move(fields), std::move(body)};
  static_cast<void>(co_await exchange->reply(std::move(reply)));
}

}  // namespace

aio::Task<> get_files(std::shared_ptr<Daemon> daemon, Exchange exchange) {
  const auto ask = co_await admit_file_request(daemon, exchange, "read");
  if (!ask) co_return;
  const std::string path = ask->path;
  const DownloadAsk wanted = ask_of(exchange->head());
  auto opened = co_await daemon->background.run([wanted, path] { return open_for(wanted, path); });
  if (!opened) {
    co_await reply_error(exchange, rest_status(opened.error()), opened.error().message);
    co_return;
  }
  const FileFacts facts = opened->facts;
  const DownloadPlan plan = opened->plan;
  if (plan.status == 406) {
    co_await reply_error(exchange, 406, "no acceptable encoding: identity and gzip are offered");
    co_return;
  }
  aio::HttpFields fields = fields_of(plan, facts, path);
  if (plan.status == 416) {
    fields.emplace_back("Content-Range", "bytes */" + std::to_string(facts.size));
  }
  const int file = opened->file.get();
  if (static_cast<std::size_t>(plan.length) > kChunkBytes) {
    co_await send_in_parts(daemon, exchange, file, plan, path, std::move(fields));
  } else {
    co_await send_at_once(exchange, plan, std::move(opened->whole), std::move(fields));
  }
}

}  // namespace executor
