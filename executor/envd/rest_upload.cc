#include <cerrno>
#include <filesystem>

#include "executor/envd/multipart.h"
#include "executor/envd/rest.h"
#include "executor/files/entry.h"
#include "executor/files/gzip.h"
#include "executor/files/path.h"
#include "executor/files/removal.h"
#include "executor/files/staging.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

constexpr std::size_t kChunkBytes = 64u << 10;
constexpr std::size_t kComposeBytesMax = 1u << 20;
constexpr std::size_t kUploadedFilesMax = 10'000;  // In one request.
constexpr std::string_view kMetadataPrefix = "x-metadata-";

using Metadata = std::map<std::string, std::string>;

// The plain bytes of a request's body, whether it came compressed or not.
class Body {
 public:
  Body(Exchange exchange, bool compressed) : exchange_(std::move(exchange)) {
    if (compressed) gunzip_.emplace();
  }

  // The next bytes; empty at the end.
  aio::Task<FileResult<std::string>> next() {
    for (;;) {
      if (gunzip_) {
        auto piece = gunzip_->next();
        if (!piece) co_return FileError(piece.error());
        if (!piece->empty()) co_return *std::move(piece);
      }
      std::string bytes(kChunkBytes, '\0');
      const auto got = co_await exchange_->read(bytes.data(), bytes.size());
      if (!got) co_return FileError(got.error());
      bytes.resize(*got);
      if (gunzip_ && *got == 0 && !gunzip_->finished())
        co_return FileError(base::error(base::ErrorCode::kInvalid, "the gzip body is cut short"));
      if (!gunzip_ || *got == 0) co_return bytes;
      gunzip_->add(bytes);
    }
  }

 private:
  Exchange exchange_;
  std::optional<Gunzip> gunzip_;
};

// The files of one upload: each is taken into place when its last byte is there.
class Upload {
 public:
  Upload(std::shared_ptr<Daemon> daemon, User user, Metadata metadata)
      : daemon_(std::move(daemon)), user_(std::move(user)), metadata_(std::move(metadata)) {}

  aio::Task<FileResult<base::Done>> begin(std::string path) {
    if (written_.size() >= kUploadedFilesMax)
      co_return FileError(base::error(base::ErrorCode::kInvalid, "too many files in one request"));
    auto staged = co_await daemon_->background.run(
        [this, path] { return StagedFile::begin(path, daemon_->users, user_); });
    if (!staged) co_return staged.error();
    staged_.emplace(*std::move(staged));
    path_ = std::move(path);
    co_return base::Done{};
  }

  aio::Task<FileResult<base::Done>> write(std::string bytes) {
    co_return co_await daemon_->background.run([this, &bytes] { return staged_->write(bytes); });
  }

  aio::Task<FileResult<base::Done>> end() {
    auto done = co_await daemon_->background.run([this] { return staged_->commit(metadata_); });
    staged_.reset();
    if (!done) co_return done.error();
    base::Json entry = {{"name", std::filesystem::path(path_).filename().string()},
                        {"path", path_},
                        {"type", "file"}};
    if (!metadata_.empty()) entry["metadata"] = metadata_;
    written_.push_back(std::move(entry));
    co_return base::Done{};
  }

  const base::Json& written() const { return written_; }

 private:
  std::shared_ptr<Daemon> daemon_;
  User user_;
  Metadata metadata_;
  std::string path_;
  std::optional<StagedFile> staged_;
  base::Json written_ = base::Json::array();
};

aio::Task<FileResult<base::Done>> take_octets(Body& body, Upload& upload, std::string path) {
  CO_CHECK_OK(co_await upload.begin(std::move(path)));
  for (;;) {
    CO_TRY(std::string bytes, co_await body.next());
    if (bytes.empty()) break;
    CO_CHECK_OK(co_await upload.write(std::move(bytes)));
  }
  co_return co_await upload.end();
}

struct Destination {
  FileAsk ask;
  std::string workdir;

  FileResult<std::string> of(const Multipart::PartBegins& part) const {
    if (ask.path_given) return ask.path;
    if (!part.file_name || part.file_name->empty())
      return FileError(base::error(base::ErrorCode::kInvalid,
                                   "a part has no file name, and there is no path in the query"));
    auto path = resolve_path(*part.file_name, ask.user, workdir);
    if (!path) return FileError(path.error());
    return *std::move(path);
  }
};

// Takes the events that the bytes so far make up; true at the closing boundary.
aio::Task<FileResult<bool>> take_parts(Multipart& multipart, Upload& upload,
                                       const Destination& destination, bool& in_file) {
  for (;;) {
    auto event = multipart.next();
    if (!event) co_return FileError(event.error());
    if (std::holds_alternative<Multipart::NeedsMore>(*event)) co_return false;
    if (std::holds_alternative<Multipart::Finished>(*event)) co_return true;
    if (const auto* part = std::get_if<Multipart::PartBegins>(&*event)) {
      in_file = part->name == "file";
      if (!in_file) continue;
      CO_TRY(std::string path, destination.of(*part));
      CO_CHECK_OK(co_await upload.begin(std::move(path)));
    }
    if (auto* part = std::get_if<Multipart::PartBytes>(&*event); part && in_file)
      CO_CHECK_OK(co_await upload.write(std::move(part->bytes)));
    if (std::holds_alternative<Multipart::PartEnds>(*event) && in_file)
      CO_CHECK_OK(co_await upload.end());
  }
}

aio::Task<FileResult<base::Done>> take_multipart(Body& body, Upload& upload, std::string boundary,
                                                 Destination destination) {
  Multipart multipart(std::move(boundary));
  bool in_file = false;
  bool finished = false;
  for (;;) {
    CO_TRY(const std::string bytes, co_await body.next());
    if (bytes.empty()) break;
    if (finished) continue;  // What follows the closing boundary.
    multipart.add(bytes);
    CO_TRY(finished, co_await take_parts(multipart, upload, destination, in_file));
  }
  if (!finished)
    co_return FileError(base::error(base::ErrorCode::kInvalid, "the multipart body is cut short"));
  co_return base::Done{};
}

// Nothing when they are too large.
std::optional<Metadata> metadata_of(const aio::HttpHead& head) {
  Metadata metadata;
  std::size_t bytes = 0;
  for (const auto& [name, value] : head.fields) {
    const std::string lowered = base::lower(name);
    if (!lowered.starts_with(kMetadataPrefix)) continue;
    const std::string key = lowered.substr(kMetadataPrefix.size());
    bytes += key.size() + value.size();
    if (!key.empty()) metadata[key] = value;
  }
  return bytes <= kMetadataBytesMax ? std::optional(metadata) : std::nullopt;
}

aio::Task<> reply_uploaded(Exchange exchange, const base::Json& written) {
  // JSON under the type of plain text: what the daemon that this one stands in for sends.
  aio::HttpReply reply{
      200, {{"Content-Type", "text/plain; charset=utf-8"}}, base::to_text(written)};
  static_cast<void>(co_await exchange->reply(std::move(reply)));
}

bool is_octets(std::string_view content_type) {
  const auto kind = base::trim(content_type.substr(0, content_type.find(';')));
  return base::equal_ignoring_case(kind, "application/octet-stream");
}

// Nothing: this upload can be taken. Else what is wrong with its head.
std::optional<std::string> objection(const aio::HttpHead& head, const FileAsk& ask) {
  const std::string type = head.field("Content-Type").value_or("");
  const std::string encoding = base::lower(head.field("Content-Encoding").value_or("identity"));
  if (encoding != "identity" && encoding != "gzip")
    return "Content-Encoding must be gzip or identity, not '" + encoding + "'";
  if (is_octets(type)) {
    if (!ask.path_given) return "an application/octet-stream upload needs a path in the query";
  } else if (!multipart_boundary(type)) {
    return "Content-Type must be multipart/form-data with a boundary or application/octet-stream";
  }
  if (!metadata_of(head))
    return "X-Metadata-* headers hold more than " + std::to_string(kMetadataBytesMax) + " bytes";
  return std::nullopt;
}

FileResult<Entry> compose(const std::vector<std::string>& sources, const std::string& destination,
                          const Users& users, const User& user) {
  auto staged = StagedFile::begin(destination, users, user);
  if (!staged) return staged.error();
  for (const std::string& source : sources) CHECK_OK(staged->append_file(source));
  CHECK_OK(staged->commit({}));
  for (const std::string& source : sources)
    if (source != staged->target()) CHECK_OK(remove_entry(source));
  return stat_entry(destination, users);
}

struct ComposeAsk {
  User user;
  std::vector<std::string> sources;
  std::string destination;
};

base::Result<ComposeAsk> read_compose(const Daemon& daemon, const base::Json& body) {
  TRY(User user, daemon.user_called(base::text_at(body, "username")));
  const std::string& workdir = daemon.settings.default_workdir;
  const base::Json* sources = base::array_at(body, "source_paths");
  const auto destination = base::text_at(body, "destination");
  if (!sources || sources->empty() || !destination || destination->empty())
    return base::error(base::ErrorCode::kInvalid,
                       "source_paths (not empty) and destination are needed");
  ComposeAsk ask{std::move(user), {}, {}};
  for (const base::Json& source : *sources) {
    if (!source.is_string())
      return base::error(base::ErrorCode::kInvalid, "source_paths must be a list of strings");
    TRY(std::string path, resolve_path(source.get<std::string>(), ask.user, workdir));
    ask.sources.push_back(std::move(path));
  }
  TRY(ask.destination, resolve_path(*destination, ask.user, workdir));
  return ask;
}

}  // namespace

aio::Task<> post_files(std::shared_ptr<Daemon> daemon, Exchange exchange) {
  auto ask = co_await admit_file_request(daemon, exchange, "write");
  if (!ask) co_return;
  const aio::HttpHead& head = exchange->head();
  if (auto wrong = objection(head, *ask)) {
    co_await reply_error(exchange, 400, *std::move(wrong));
    co_return;
  }
  const std::string type = head.field("Content-Type").value_or("");
  const bool gzip = base::lower(head.field("Content-Encoding").value_or("")) == "gzip";
  Body body(exchange, gzip);
  Upload upload(daemon, ask->user, metadata_of(head).value_or(Metadata{}));
  FileResult<base::Done> taken = base::Done{};
  if (is_octets(type)) {
    taken = co_await take_octets(body, upload, ask->path);
  } else {
    Destination destination{*ask, daemon->settings.default_workdir};
    taken =
        co_await take_multipart(body, upload, *multipart_boundary(type), std::move(destination));
  }
  if (!taken) {
    co_await reply_error(exchange, rest_status(taken.error()), taken.error().message);
    co_return;
  }
  co_await reply_uploaded(exchange, upload.written());
}

aio::Task<> post_compose(std::shared_ptr<Daemon> daemon, Exchange exchange) {
  const auto body = co_await exchange->read_all(kComposeBytesMax);
  if (!body) {
    co_await reply_error(exchange, 400, body.error().message);
    co_return;
  }
  const auto json = base::parse_json(*body);
  if (!json) {
    co_await reply_error(exchange, 400, "the body is not JSON");
    co_return;
  }
  const auto ask = read_compose(*daemon, *json);
  if (!ask) {
    const bool denied = ask.error().code == base::ErrorCode::kDenied;
    co_await reply_error(exchange, denied ? 401 : 400, ask.error().message);
    co_return;
  }
  const auto entry = co_await daemon->background.run([&daemon, &ask] {
    return compose(ask->sources, ask->destination, daemon->users, ask->user);
  });
  if (!entry) {
    co_await reply_error(exchange, rest_status(entry.error()), entry.error().message);
    co_return;
  }
  co_await reply_json(exchange, 200,
                      base::Json{{"name", entry->name}, {"path", entry->path}, {"type", "file"}});
}

}  // namespace executor
