#include "libs/aio/http_client.h"

#include "libs/aio/http_message.h"
#include "libs/aio/loop.h"

namespace aio {
namespace {

constexpr std::size_t kReplyHeadBytesMax = 64u << 10;

base::Error unavailable(std::string_view what) {
  return base::error(base::ErrorCode::kUnavailable, what);
}

std::string request_text(const HttpRequest& request) {
  std::string text = request.method + " " + request.target + " HTTP/1.1\r\n";
  for (const auto& [name, value] : request.fields) text += field_line(name, value);
  if (!find_field(request.fields, "host")) text += "Host: localhost\r\n";
  text += "Connection: close\r\n";
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT")
    text += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
  return text + "\r\n" + request.body;
}

Task<base::Result<std::string>> read_whole(MessageReader& reader, Input& input,
                                           std::size_t bytes_max) {
  std::string whole;
  std::vector<char> piece(16u << 10);
  for (;;) {
    CO_TRY(const std::size_t got, co_await reader.read_body(input, piece.data(), piece.size()));
    if (got == 0) co_return whole;
    if (whole.size() + got > bytes_max) co_return unavailable("the reply is too large");
    whole.append(piece.data(), got);
  }
}

Task<base::Result<HttpReply>> ask(std::shared_ptr<Stream> stream, HttpRequest request,
                                  std::size_t body_bytes_max) {
  const std::string text = request_text(request);
  CO_CHECK_OK(co_await stream->write(text));
  Input input(stream, kReplyHeadBytesMax + kPieceBytes);
  CO_TRY(const auto reader,
         co_await read_reply_head(input, kReplyHeadBytesMax, request.method == "HEAD"));
  if (reader->head().status == 101) co_return unavailable("the server speaks no HTTP any more");
  CO_TRY(std::string body, co_await read_whole(*reader, input, body_bytes_max));
  const MessageHead head = reader->head();
  co_return HttpReply{head.status, head.fields, std::move(body)};
}

}  // namespace

Task<base::Result<HttpReply>> exchange(std::shared_ptr<Stream> stream, HttpRequest request,
                                       base::Milliseconds timeout, std::size_t body_bytes_max) {
  auto reply = co_await within(ask(std::move(stream), std::move(request), body_bytes_max), timeout);
  if (reply) co_return *std::move(reply);
  co_return base::error(base::ErrorCode::kUnavailable, "no HTTP reply within ",
                        std::to_string(timeout.count()), " ms");
}

}  // namespace aio
