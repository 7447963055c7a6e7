#include "libs/envd/client.h"

#include <algorithm>

#include "libs/base/crypto.h"
#include "libs/base/json.h"
#include "libs/base/strings.h"
#include "libs/envd/call.h"

// envd's health, and its files.
namespace envd {
namespace {

using base::Done;
using base::error;
using base::ErrorCode;
using base::Json;
using base::Result;

std::string files_path(const std::string& path, const std::string& user,
                       const ClientOptions& options) {
  std::string query = "/files?path=" + base::percent_encode(path);
  if (const std::string name = user_or_default(user, options); !name.empty())
    query += "&username=" + base::percent_encode(name);
  return query;
}

// A number, or a number as text, which is how proto3 writes 64 bits.
std::int64_t number_at(const Json& object, const char* key) {
  if (const auto number = base::integer_at(object, key)) return *number;
  return base::parse_integer(base::text_at(object, key).value_or("")).value_or(0);
}

Result<Entry> read_entry(const Json& reply) {
  const Json* entry = base::object_at(reply, "entry");
  const auto path = entry ? base::text_at(*entry, "path") : std::nullopt;
  if (!path) return error(ErrorCode::kUnavailable, "entry.path is missing");
  const std::string type = base::text_at(*entry, "type").value_or("");
  return Entry{.path = *path,
               .is_folder = type == "FILE_TYPE_DIRECTORY" || number_at(*entry, "type") == 2,
               .is_symlink = base::text_at(*entry, "symlinkTarget").has_value() ||
                             type == "FILE_TYPE_SYMLINK",
               .size = static_cast<std::uint64_t>(number_at(*entry, "size")),
               .mode = static_cast<std::uint32_t>(number_at(*entry, "mode")) & 07777,
               .owner = base::text_at(*entry, "owner").value_or("")};
}

// A body that is read from where it is, so that a large file is not copied for each sandbox. What
// `content` views outlives the request.
class Body {
 public:
  Body(std::string before, std::string_view content, std::string after)
      : before_(std::move(before)), content_(content), after_(std::move(after)) {}

  std::size_t size() const { return before_.size() + content_.size() + after_.size(); }
  std::size_t read(char* buffer, std::size_t room) {
    std::size_t filled = 0, begin = 0;
    for (const std::string_view part :
         {std::string_view(before_), content_, std::string_view(after_)}) {
      const std::size_t skipped = std::min(part.size(), at_ - std::min(at_, begin));
      const std::size_t taken = part.substr(skipped).copy(buffer + filled, room - filled);
      filled += taken;
      at_ += taken;
      begin += part.size();
    }
    return filled;
  }

 private:
  std::string before_;
  std::string_view content_;
  std::string after_;
  std::size_t at_ = 0;
};

void put_body(net::Request& request, Body body) {
  request.source_bytes = body.size();
  request.source = [body = std::move(body)](char* buffer, std::size_t room) mutable {
    return Result<std::size_t>(body.read(buffer, room));
  };
}

// One file as multipart/form-data, the form that every envd takes.
void put_multipart(net::Request& request, const std::string& path, std::string_view content) {
  const std::string boundary = "sandfleet-" + base::random_hex(16);
  std::string name;  // Informative only: the `path` query decides.
  for (char c : path)
    name += c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20 ? '_' : c;
  request.headers.add("Content-Type", "multipart/form-data; boundary=" + boundary);
  put_body(request,
           {"--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" +
                name + "\"\r\nContent-Type: application/octet-stream\r\n\r\n",
            content, "\r\n--" + boundary + "--\r\n"});
}

}  // namespace

Client::Client(net::Transport& transport, const base::Clock& clock, Route route,
               ClientOptions options)
    : transport_(transport),
      clock_(clock),
      route_(std::move(route)),
      options_(std::move(options)) {}

Result<Done> Client::health(std::stop_token stop) {
  const net::Reply reply =
      transport_.send(request_to(route_, "GET", "/health"), options_.timeout, stop);
  if (reply && reply->status == 204) return Done{};
  if (auto refusal = refusal_of("health of envd", reply, Side::kHealth, options_)) return *refusal;
  return Done{};
}

Result<std::optional<Entry>> Client::stat(const std::string& path, const std::string& user,
                                          std::stop_token stop) {
  const std::string what = "stat " + path;
  auto reply = unary({transport_, route_, options_}, "filesystem.Filesystem/Stat", user, what,
                     {{"path", path}}, stop);
  if (!reply && reply.error().code == ErrorCode::kNotFound) return std::optional<Entry>();
  if (!reply) return reply.error();
  auto entry = read_entry(*reply);
  if (!entry) return error(ErrorCode::kUnavailable, what, ": ", entry.error().message);
  return std::optional(*std::move(entry));
}

Result<Done> Client::upload(const std::string& path, std::string_view content,
                            const std::string& user, std::stop_token stop) {
  const std::string what = "upload " + path;
  net::Request request = request_to(route_, "POST", files_path(path, user, options_));
  if (version_at_least(options_.envd_version, "0.5.7")) {
    request.headers.add("Content-Type", "application/octet-stream");
    put_body(request, {"", content, ""});
  } else {
    put_multipart(request, path, content);
  }
  const net::Reply reply = transport_.send(request, options_.transfer_timeout, stop);
  if (auto refusal = refusal_of(what, reply, Side::kFiles, options_)) return *refusal;
  const auto written = base::parse_json(reply->body);
  if (!written || !written->is_array() || written->empty())
    return error(ErrorCode::kUnavailable, what, ": envd names no file that it wrote");
  return Done{};
}

Result<std::string> Client::download(const std::string& path, const std::string& user,
                                     std::stop_token stop) {
  const std::string what = "download " + path;
  const net::Reply reply = transport_.send(
      request_to(route_, "GET", files_path(path, user, options_)), options_.transfer_timeout, stop);
  if (auto refusal = refusal_of(what, reply, Side::kFiles, options_)) return *refusal;
  return reply->body;
}

}  // namespace envd
