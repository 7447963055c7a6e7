#include "libs/aio/http_message.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <cstring>

#include "libs/base/strings.h"

namespace aio {

namespace http = boost::beast::http;

namespace {
constexpr std::size_t kFirstBytes = 4u << 10;  // Of an Input: more than most heads have.
}  // namespace

Input::Input(std::shared_ptr<Stream> stream, std::size_t bytes_max)
    : stream_(std::move(stream)), bytes_max_(bytes_max) {}

std::string_view Input::ready() const { return {bytes_.data() + begin_, end_ - begin_}; }

void Input::consume(std::size_t count) {
  consumed_ += count;
  begin_ += count;
  if (begin_ == end_) begin_ = end_ = 0;
}

bool Input::full() const { return end_ - begin_ == bytes_max_; }

void Input::make_room() {
  if (begin_ > 0 && end_ == bytes_.size()) {
    std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (more_came_ || end_ == bytes_.size())
    bytes_.resize(std::clamp(bytes_.size() * 2, kFirstBytes, bytes_max_));
}

Task<base::Result<std::size_t>> Input::fill() {
  make_room();
  const std::size_t room = bytes_.size() - end_;
  CO_TRY(const std::size_t got, co_await stream_->read(bytes_.data() + end_, room));
  end_ += got;
  more_came_ = got == room;
  co_return got;
}

void Input::give_back() {
  bytes_ = {};
  more_came_ = false;
}

base::Error body_too_large(std::uint64_t bytes_max) {
  return base::error(base::ErrorCode::kInvalid, "the body is larger than ",
                     std::to_string(bytes_max), " bytes");
}

namespace {

base::Error body_error(const boost::system::error_code& failed) {
  return base::error(base::ErrorCode::kInvalid, "malformed HTTP body: ", failed.message());
}

base::Error cut_short() {
  return base::error(base::ErrorCode::kUnavailable, "the connection ended within a message");
}

template <bool is_request>
class Reader final : public MessageReader {
 public:
  explicit Reader(std::size_t head_bytes_max) {
    parser_.header_limit(static_cast<std::uint32_t>(head_bytes_max));
    parser_.body_limit(boost::none);
  }
  void skip_body() { parser_.skip(true); }
  void limit_body(std::uint64_t bytes_max) override {
    body_bytes_max_ = bytes_max;
    parser_.body_limit(bytes_max);
  }

  Task<HeadFault> read_head(Input& input) override {
    while (!parser_.is_header_done()) {
      if (!input.ready().empty()) {
        boost::system::error_code failed;
        input.consume(put(input, failed));
        if (failed == http::error::header_limit) co_return HeadFault::kTooLarge;
        if (failed && failed != http::error::need_more) co_return HeadFault::kMalformed;
        if (parser_.is_header_done()) break;
        if (input.full()) co_return HeadFault::kTooLarge;
      }
      const auto got = co_await input.fill();
      if (!got) co_return HeadFault::kBroken;
      if (*got == 0) co_return input.ready().empty() ? HeadFault::kEnded : HeadFault::kBroken;
    }
    co_return HeadFault::kNone;
  }

  MessageHead head() const override {
    const auto& message = parser_.get();
    MessageHead head;
    if constexpr (is_request) {
      head.method = std::string(message.method_string());
      head.target = std::string(message.target());
    } else {
      head.status = static_cast<int>(message.result_int());
    }
    for (const auto& field : message)
      head.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
    head.http_1_1 = message.version() >= 11;
    head.keep_alive = message.keep_alive();
    head.chunked = parser_.chunked();
    head.without_body = parser_.is_done();
    if (const auto length = parser_.content_length()) head.content_length = *length;
    return head;
  }

  Task<base::Result<std::size_t>> read_body(Input& input, char* buffer, std::size_t size) override {
    auto& body = parser_.get().body();
    while (!parser_.is_done()) {
      if (!input.ready().empty()) {
        body.data = buffer;
        body.size = size;
        body.more = true;
        boost::system::error_code failed;
        input.consume(put(input, failed));
        const std::size_t got = size - body.size;
        if (got > 0) co_return got;
        if (!failed || parser_.is_done()) continue;
        if (failed == http::error::body_limit) co_return body_too_large(body_bytes_max_);
        if (failed != http::error::need_more) co_return body_error(failed);
        if (input.full()) co_return body_error(failed);
      }
      CO_TRY(const std::size_t more, co_await input.fill());
      if (more > 0) continue;
      boost::system::error_code failed;
      parser_.put_eof(failed);
      if (failed) co_return cut_short();
    }
    co_return std::size_t{0};
  }

  bool done() const override { return parser_.is_done(); }

 private:
  std::size_t put(Input& input, boost::system::error_code& failed) {
    const auto ready = input.ready();
    return parser_.put(boost::asio::const_buffer(ready.data(), ready.size()), failed);
  }

  http::parser<is_request, http::buffer_body> parser_;
  std::uint64_t body_bytes_max_ = 0;  // Where there is a limit.
};

}  // namespace

std::unique_ptr<MessageReader> make_request_reader(std::size_t head_bytes_max) {
  return std::make_unique<Reader<true>>(head_bytes_max);
}

std::unique_ptr<MessageReader> make_response_reader(std::size_t head_bytes_max, bool to_head) {
  auto reader = std::make_unique<Reader<false>>(head_bytes_max);
  if (to_head) reader->skip_body();
  return reader;
}

namespace {

base::Error no_reply(HeadFault fault) {
  const char* what = fault == HeadFault::kMalformed  ? "sent no HTTP"
                     : fault == HeadFault::kTooLarge ? "sent too large a head"
                                                     : "closed the connection before its reply";
  return base::error(base::ErrorCode::kUnavailable, "the server ", what);
}

}  // namespace

Task<base::Result<std::unique_ptr<MessageReader>>> read_reply_head(Input& input,
                                                                   std::size_t heads_bytes_max,
                                                                   bool to_head) {
  const std::uint64_t end = input.consumed() + heads_bytes_max;
  for (int interim = 0; interim <= kInterimRepliesMax; ++interim) {
    if (input.consumed() >= end) co_return no_reply(HeadFault::kTooLarge);
    auto reader = make_response_reader(static_cast<std::size_t>(end - input.consumed()), to_head);
    const HeadFault fault = co_await reader->read_head(input);
    if (fault != HeadFault::kNone) co_return no_reply(fault);
    const int status = reader->head().status;
    if (status >= 200 || status == 101) co_return std::move(reader);
  }
  co_return base::error(base::ErrorCode::kUnavailable, "the server sent more than ",
                        std::to_string(kInterimRepliesMax), " interim replies");
}

std::string reason_phrase(int status) {
  return std::string(http::obsolete_reason(static_cast<http::status>(status)));
}

std::string field_line(std::string_view name, std::string_view value) {
  std::string line;
  line.reserve(name.size() + value.size() + 4);
  line.append(name).append(": ").append(value);
  for (char& c : line)
    if (c == '\r' || c == '\n' || c == '\0') c = ' ';
  return line.append("\r\n");
}

std::string chunk(std::string_view bytes) {
  char size[20];
  const int length = std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  std::string whole;
  whole.reserve(bytes.size() + 24);
  return whole.append(size, static_cast<std::size_t>(length)).append(bytes).append("\r\n");
}

std::optional<std::string> find_field(const HttpFields& fields, std::string_view name) {
  for (const auto& [key, value] : fields)
    if (base::equal_ignoring_case(key, name)) return value;
  return std::nullopt;
}

namespace {

std::vector<std::string> connection_options(const HttpFields& fields) {
  std::vector<std::string> options;
  for (const auto& [name, value] : fields) {
    if (!base::equal_ignoring_case(name, "connection")) continue;
    for (const auto& option : base::split(value, ','))
      options.push_back(base::lower(base::trim(option)));
  }
  return options;
}

}  // namespace

HttpFields end_to_end(const HttpFields& fields) {
  std::vector<std::string> stays = connection_options(fields);
  for (const char* name : {"connection", "keep-alive", "proxy-connection", "proxy-authenticate",
                           "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"})
    stays.emplace_back(name);
  HttpFields kept;
  for (const auto& field : fields) {
    bool stay = false;
    for (const auto& name : stays) stay = stay || base::equal_ignoring_case(name, field.first);
    if (!stay) kept.push_back(field);
  }
  return kept;
}

bool asks_for_upgrade(const HttpFields& fields) {
  bool named = false;
  for (const auto& option : connection_options(fields)) named = named || option == "upgrade";
  return named && find_field(fields, "upgrade").has_value();
}

}  // namespace aio
