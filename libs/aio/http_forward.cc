#include "libs/aio/http_exchange.h"
#include "libs/aio/loop.h"
#include "libs/base/strings.h"

// Exchange::forward: a request to another server and its reply back.
namespace aio {
namespace {

constexpr std::size_t kHeadBytesMax = 256u << 10;

base::Error broke_off(std::string_view why) {
  return base::error(base::ErrorCode::kCancelled, "forwarding broke off: ", why);
}

// Copies until `from` ends, then tells `to` so; a failure cuts both.
Task<> carry(Stream& from, Stream& to) {
  std::vector<char> piece(kPieceBytes);
  for (;;) {
    const auto got = co_await from.read(piece.data(), piece.size());
    if (got && *got == 0) {
      to.close_write();
      co_return;
    }
    if (!got || !co_await to.write({piece.data(), *got})) {
      from.reset();
      to.reset();
      co_return;
    }
  }
}

}  // namespace

Task<base::Result<base::Done>> Exchange::send_request(Stream& upstream) {
  std::string text = request_.method + " " + request_.target + " HTTP/1.1\r\n";
  for (const auto& [name, value] : end_to_end(request_.fields))
    if (!base::equal_ignoring_case(name, "expect")) text += field_line(name, value);
  if (asks_for_upgrade(request_.fields)) {
    text += "Connection: Upgrade\r\n";
    text += field_line("Upgrade", *find_field(request_.fields, "upgrade"));
  } else {
    text += "Connection: close\r\n";
  }
  if (request_.chunked) text += "Transfer-Encoding: chunked\r\n";
  text += "\r\n";
  co_return co_await upstream.write(text);
}

// Sends the body on, then watches for the peer's leaving: returns when it left.
Task<> Exchange::upload(std::shared_ptr<Stream> upstream) {
  std::vector<char> piece(kPieceBytes);
  while (!reader_->done()) {
    const auto got = co_await read(piece.data(), piece.size());
    if (!got) co_return;
    if (*got == 0) break;
    const std::string_view bytes(piece.data(), *got);
    const auto sent =
        request_.chunked ? co_await upstream->write(chunk(bytes)) : co_await upstream->write(bytes);
    if (!sent) {  // It may have replied already, without wanting the rest.
      co_await wait_for_disconnect();
      co_return;
    }
  }
  upload_done_ = !request_.chunked || (co_await upstream->write(kLastChunk)).ok();
  co_await wait_for_disconnect();
}

Task<base::Result<base::Done>> Exchange::relay_body(MessageReader& reader, Input& input,
                                                    bool chunked) {
  std::vector<char> piece(kPieceBytes);
  for (;;) {
    const auto got = co_await reader.read_body(input, piece.data(), piece.size());
    if (!got) co_return broke_off(got.error().message);
    if (*got == 0) break;
    std::string bytes(piece.data(), *got);
    const auto sent = co_await send(chunked ? chunk(bytes) : std::move(bytes));
    if (!sent) co_return broke_off(sent.error().message);
  }
  if (chunked) {
    const auto sent = co_await send(std::string(kLastChunk));
    if (!sent) co_return broke_off(sent.error().message);
  }
  phase_ = Phase::kAnswered;
  co_return base::Done{};
}

Task<base::Result<base::Done>> Exchange::tunnel(std::shared_ptr<Stream> upstream,
                                                Input& from_upstream) {
  keep_alive_ = false;
  phase_ = Phase::kAnswered;
  const std::string down(from_upstream.ready()), up(input_->ready());
  input_->consume(up.size());
  if (!co_await stream_->write(down) || !co_await upstream->write(up)) {
    abort();
    co_return broke_off("the peer is gone");
  }
  co_await both(carry(*stream_, *upstream), carry(*upstream, *stream_));
  co_return base::Done{};
}

Task<base::Result<base::Done>> Exchange::relay_reply(Input& input) {
  const bool to_head = request_.method == "HEAD";
  CO_TRY(const auto reader, co_await read_reply_head(input, kHeadBytesMax, to_head));
  const MessageHead head = reader->head();
  if (reply_lost_) {
    abort();
    co_return broke_off("the reply was to be lost");
  }
  upgraded_ = head.status == 101;
  const bool bodiless = head.without_body || to_head;
  const bool chunked = !head.content_length && !bodiless && request_.http_1_1;
  if (!bodiless && !head.content_length && !request_.http_1_1) keep_alive_ = false;
  if (!upload_done_) keep_alive_ = false;
  phase_ = Phase::kStreaming;
  std::string text = head_text(head.status, end_to_end(head.fields));
  if (upgraded_)
    text += "Connection: Upgrade\r\n" +
            field_line("Upgrade", find_field(head.fields, "upgrade").value_or(""));
  if (chunked) text += "Transfer-Encoding: chunked\r\n";
  const auto sent = co_await send(text + "\r\n");
  if (!sent) co_return broke_off(sent.error().message);
  if (upgraded_) co_return base::Done{};
  co_return co_await relay_body(*reader, input, chunked);
}

Task<> Exchange::relay(Input& input, base::Result<base::Done>& outcome) {
  outcome = co_await relay_reply(input);
}

Task<base::Result<base::Done>> Exchange::forward(std::shared_ptr<Stream> upstream) {
  if (phase_ != Phase::kUnanswered)
    co_return base::error(base::ErrorCode::kCancelled, "the request was answered already");
  upstream_ = upstream;
  if (!co_await send_request(*upstream))
    co_return base::error(base::ErrorCode::kUnavailable,
                          "upstream closed the connection before the request was sent");
  Input input(upstream, kHeadBytesMax + kPieceBytes);
  base::Result<base::Done> outcome = broke_off("the peer left");
  const bool peer_left = co_await race(relay(input, outcome), upload(upstream)) == 1;
  if (!peer_left && outcome && upgraded_) co_return co_await tunnel(upstream, input);
  upstream->close();
  if (!upload_done_) keep_alive_ = false;
  if (peer_left || (!outcome && phase_ != Phase::kUnanswered)) {
    abort();
    co_return broke_off(peer_left ? "the peer left" : outcome.error().message);
  }
  co_return outcome;
}

}  // namespace aio
