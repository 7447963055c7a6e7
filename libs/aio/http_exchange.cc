#include "libs/aio/http_exchange.h"

#include "libs/aio/loop.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace aio {
namespace {

constexpr std::size_t kDrainBytesMax = 256u << 10;  // Of a body that the handler did not want.
constexpr base::Milliseconds kDrainTime{1'000};

base::Error gone() { return base::error(base::ErrorCode::kUnavailable, "the peer is gone"); }

bool has_no_body(int status) { return status < 200 || status == 204 || status == 304; }

std::string plus_as_space(std::string_view text) {
  std::string spaced(text);
  for (char& c : spaced)
    if (c == '+') c = ' ';
  return spaced;
}

}  // namespace

std::string HttpHead::path() const {
  const auto raw = target.substr(0, target.find('?'));
  return base::percent_decode(raw).value_or(raw);
}

std::optional<std::string> HttpHead::query(std::string_view name) const {
  const auto mark = target.find('?');
  if (mark == std::string::npos) return std::nullopt;
  for (const auto& pair : base::split(std::string_view(target).substr(mark + 1), '&')) {
    const auto equals = pair.find('=');
    const auto key = base::percent_decode(plus_as_space(pair.substr(0, equals)));
    if (!key || *key != name) continue;
    if (equals == std::string::npos) return std::string();
    const auto raw = plus_as_space(pair.substr(equals + 1));
    return base::percent_decode(raw).value_or(raw);
  }
  return std::nullopt;
}

std::optional<std::string> HttpHead::field(std::string_view name) const {
  return find_field(fields, name);
}

Exchange::Exchange(std::shared_ptr<Stream> stream, std::shared_ptr<Input> input,
                   std::unique_ptr<MessageReader> reader, std::string peer)
    : stream_(std::move(stream)),
      input_(std::move(input)),
      reader_(std::move(reader)),
      peer_(std::move(peer)),
      request_(reader_->head()),
      keep_alive_(request_.keep_alive),
      continue_expected_(request_.http_1_1 && !request_.without_body) {
  head_ = {request_.method, request_.target, request_.fields};
  const auto expect = find_field(request_.fields, "expect");
  continue_expected_ =
      continue_expected_ && expect && base::equal_ignoring_case(*expect, "100-continue");
}

Task<base::Result<std::size_t>> Exchange::read(char* buffer, std::size_t size) {
  if (reader_->done()) co_return std::size_t{0};
  if (continue_expected_ && phase_ == Phase::kUnanswered) {
    continue_expected_ = false;
    CO_CHECK_OK(co_await send("HTTP/1.1 100 Continue\r\n\r\n"));
  }
  co_return co_await reader_->read_body(*input_, buffer, size);
}

Task<base::Result<std::string>> Exchange::read_all(std::size_t bytes_max) {
  if (request_.content_length && *request_.content_length > bytes_max)
    co_return body_too_large(bytes_max);
  reader_->limit_body(bytes_max);
  std::string whole;
  std::vector<char> piece(16u << 10);
  for (;;) {
    CO_TRY(const std::size_t got, co_await read(piece.data(), piece.size()));
    if (got == 0) co_return whole;
    if (whole.size() + got > bytes_max) co_return body_too_large(bytes_max);
    whole.append(piece.data(), got);
  }
}

std::string Exchange::head_text(int status, const HttpFields& fields) const {
  std::string text = "HTTP/1.1 " + std::to_string(status) + " " + reason_phrase(status) + "\r\n";
  if (!find_field(fields, "date"))
    text += field_line("Date", base::to_http_date(base::SystemClock().wall()));
  for (const auto& [name, value] : fields) text += field_line(name, value);
  if (status != 101 && !keep_alive_) text += "Connection: close\r\n";
  if (status != 101 && keep_alive_ && !request_.http_1_1) text += "Connection: keep-alive\r\n";
  return text;
}

Task<base::Result<base::Done>> Exchange::send(std::string bytes) {
  auto sent = co_await stream_->write(bytes);
  if (!sent) phase_ = Phase::kBroken;
  co_return sent;
}

Task<base::Result<base::Done>> Exchange::reply(HttpReply reply) {
  if (phase_ != Phase::kUnanswered) co_return gone();
  if (reply_lost_) {
    abort();
    co_return gone();
  }
  if (continue_expected_) keep_alive_ = false;  // The peer may or may not send its body now.
  phase_ = Phase::kAnswered;
  std::string text = head_text(reply.status, reply.fields);
  if (!has_no_body(reply.status))
    text += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
  text += "\r\n";
  if (request_.method != "HEAD" && !has_no_body(reply.status)) text += reply.body;
  co_return co_await send(std::move(text));
}

Task<base::Result<base::Done>> Exchange::begin(int status, HttpFields fields) {
  if (phase_ != Phase::kUnanswered) co_return gone();
  if (reply_lost_) {
    abort();
    co_return gone();
  }
  if (continue_expected_ || !request_.http_1_1) keep_alive_ = false;
  const bool bodiless = has_no_body(status) || request_.method == "HEAD";
  reply_chunked_ = request_.http_1_1 && !find_field(fields, "content-length") && !bodiless;
  phase_ = Phase::kStreaming;
  std::string text = head_text(status, fields);
  if (reply_chunked_) text += "Transfer-Encoding: chunked\r\n";
  co_return co_await send(text + "\r\n");
}

Task<base::Result<base::Done>> Exchange::write(std::string bytes) {
  if (phase_ != Phase::kStreaming) co_return gone();
  if (bytes.empty() || request_.method == "HEAD") co_return base::Done{};
  co_return co_await send(reply_chunked_ ? chunk(bytes) : std::move(bytes));
}

Task<base::Result<base::Done>> Exchange::finish() {
  if (phase_ != Phase::kStreaming) co_return gone();
  phase_ = Phase::kAnswered;
  if (reply_chunked_) co_return co_await send(std::string(kLastChunk));
  co_return base::Done{};
}

Task<> Exchange::wait_for_disconnect() {
  // What a peer sends ahead of its turn is kept; one that sends too much is no longer watched.
  while (!input_->full()) {
    const auto got = co_await input_->fill();
    if (!got || *got == 0) co_return;
  }
  co_await sleep_for(std::chrono::hours(24 * 365));
}

base::Result<HttpExchange::TakenConnection> Exchange::take_connection() {
  if (phase_ != Phase::kUnanswered)
    return base::error(base::ErrorCode::kInvalid, "the request was answered already");
  phase_ = Phase::kAnswered;
  keep_alive_ = false;
  upgraded_ = true;
  std::string ahead(input_->ready());
  input_->consume(ahead.size());
  return TakenConnection{stream_->release(), std::move(ahead)};
}

void Exchange::abort() {
  phase_ = Phase::kBroken;
  stream_->reset();
  if (const auto upstream = upstream_.lock()) upstream->reset();
}

Task<bool> Exchange::drain() {
  std::vector<char> piece(16u << 10);
  for (std::size_t total = 0; !reader_->done() && total < kDrainBytesMax;) {
    const auto got = co_await reader_->read_body(*input_, piece.data(), piece.size());
    if (!got) co_return false;
    total += *got;
  }
  co_return reader_->done();
}

namespace {
Task<> read_to_end(Stream& stream) {
  char piece[4096];
  for (;;) {
    const auto got = co_await stream.read(piece, sizeof piece);
    if (!got || *got == 0) co_return;
  }
}
}  // namespace

Task<> Exchange::linger() {
  if (phase_ != Phase::kAnswered || upgraded_) co_return;
  stream_->close_write();
  co_await race(read_to_end(*stream_), sleep_for(kDrainTime));
}

Task<bool> Exchange::conclude() {
  if (phase_ == Phase::kUnanswered) {
    HttpReply failure{.status = 500, .body = "the request was not answered\n"};
    (void)co_await reply(std::move(failure));  // Its failure shows in the phase.
  }
  if (phase_ != Phase::kAnswered) {
    stream_->reset();  // A reply that broke off must not look whole.
    co_return false;
  }
  if (!keep_alive_ || continue_expected_) co_return false;
  if (reader_->done()) co_return true;
  co_return (co_await within(drain(), kDrainTime)).value_or(false);
}

}  // namespace aio
