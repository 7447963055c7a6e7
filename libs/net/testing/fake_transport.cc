#include "libs/net/testing/fake_transport.h"

#include <algorithm>

#include "libs/base/rest.h"

namespace net {
namespace {

using base::ErrorCode;
using base::Milliseconds;

std::string what(const Request& request) {
  return request.method + " " + describe_url(request.url);
}

Failure failure(const Request& request, ErrorCode code, std::string_view why, bool sent) {
  return Failure{{code, what(request) + ": " + std::string(why)}, sent};
}

base::Result<std::string, Failure> read_source(const Request& request) {
  std::string body, piece(16u << 10, '\0');
  for (;;) {
    auto filled = request.source(piece.data(), piece.size());
    if (!filled) return Failure{filled.error(), true};
    if (*filled == 0) return body;
    body.append(piece, 0, *filled);
  }
}

std::size_t head_bytes(const Headers& headers) {
  std::size_t total = 0;
  for (const Header& header : headers.all()) total += header.name.size() + header.value.size() + 4;
  return total;
}

}  // namespace

FakeTransport::FakeTransport(Handler handler) : handler_(std::move(handler)) {}

FakeTransport::~FakeTransport() { closing_.request_stop(); }

void FakeTransport::play(Handler handler) {
  std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
}

std::vector<Request> FakeTransport::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

Milliseconds FakeTransport::last_timeout() const {
  std::lock_guard lock(mutex_);
  return last_timeout_;
}

std::size_t FakeTransport::count(std::string_view method, std::string_view part_of_url) const {
  std::lock_guard lock(mutex_);
  return std::count_if(requests_.begin(), requests_.end(), [&](const Request& request) {
    return request.method == method && request.url.find(part_of_url) != std::string::npos;
  });
}

base::Result<Answer, Failure> FakeTransport::ask(const Request& request, std::stop_token stop) {
  if (auto objection = objection_to(request)) return *std::move(objection);
  if (stop.stop_requested()) return failure(request, ErrorCode::kCancelled, "cancelled", false);
  Request seen = request;
  if (seen.source) {
    TRY(seen.body, read_source(request));
    seen.source = nullptr;
  }
  Handler handler;
  {
    std::lock_guard lock(mutex_);
    handler = handler_;
  }
  Answer answer = handler(seen);
  if (answer.end == Answer::End::kRefused)
    return failure(request, ErrorCode::kUnavailable, "connection refused", false);
  std::lock_guard lock(mutex_);
  requests_.push_back(std::move(seen));
  return answer;
}

Reply FakeTransport::play_out(const Request& request, const Sink& sink, Milliseconds timeout,
                              std::stop_token stop) {
  {
    std::lock_guard lock(mutex_);
    last_timeout_ = timeout;
  }
  TRY(const Answer answer, ask(request, stop));
  const auto hang = [&](Milliseconds time) -> std::optional<Failure> {
    base::rest(std::min(time, timeout), stop);
    const bool stopped = stop.stop_requested();
    if (stopped) return failure(request, ErrorCode::kCancelled, "cancelled", true);
    if (time < timeout) return std::nullopt;
    return failure(request, ErrorCode::kUnavailable, "no answer in time", true);
  };
  if (answer.delay > Milliseconds(0))
    if (auto failed = hang(answer.delay)) return *failed;

  const Response head{answer.status, answer.headers};
  if (head_bytes(head.headers) > kHeadBytesMax)
    return failure(request, ErrorCode::kInvalid, "the reply's head is too large", true);
  if (!answer.headless) {
    if (!sink.head(head)) return head;
    for (const std::string& piece : answer.pieces) {
      if (stop.stop_requested()) return failure(request, ErrorCode::kCancelled, "cancelled", true);
      if (request.method != "HEAD" && !sink.bytes(piece)) return head;
    }
  }
  switch (answer.end) {
    case Answer::End::kCut:
      return failure(request, ErrorCode::kUnavailable, "the connection closed before an answer",
                     true);
    case Answer::End::kSilence:
      return *hang(timeout);
    default:
      return head;
  }
}

Reply FakeTransport::send(const Request& request, Milliseconds timeout, std::stop_token stop) {
  std::string body;
  bool too_large = false;
  const Sink keep{[](const Response&) { return true; },
                  [&](std::string_view bytes) {
                    too_large = body.size() + bytes.size() > request.body_bytes_max;
                    if (!too_large) body.append(bytes);
                    return !too_large;
                  }};
  TRY(Response response, play_out(request, keep, timeout, stop));
  if (too_large)
    return failure(request, ErrorCode::kInvalid, "the reply's body is too large", true);
  response.body = std::move(body);
  return response;
}

void FakeTransport::start(Request request, Milliseconds timeout, std::function<void(Reply)> done) {
  std::lock_guard lock(mutex_);
  started_.emplace_back([this, request = std::move(request), timeout, done = std::move(done)] {
    done(send(request, timeout, closing_.get_token()));
  });
}

Reply FakeTransport::stream(const Request& request, const Sink& sink, Milliseconds idle_timeout,
                            std::stop_token stop) {
  const Sink whole{sink.head ? sink.head : [](const Response&) { return true; },
                   sink.bytes ? sink.bytes : [](std::string_view) { return true; }};
  return play_out(request, whole, idle_timeout, stop);
}

}  // namespace net
