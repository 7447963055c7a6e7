#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace net {

struct Header {
  std::string name, value;
  bool operator==(const Header&) const = default;
};

// In order, repeats kept; looked up without regard to case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<Header> all) : all_(all) {}
  void add(std::string name, std::string value);
  std::optional<std::string> find(std::string_view name) const;  // The first of that name.
  const std::vector<Header>& all() const { return all_; }
  bool operator==(const Headers&) const = default;

 private:
  std::vector<Header> all_;
};

// Only GET and HEAD may leave a second time, unasked, when a reused connection turns out to be
// dead; every other request leaves at most once.
inline constexpr std::size_t kBodyBytesMax = 16u << 20;   // Of a reply, unless asked otherwise.
inline constexpr std::size_t kHeadBytesMax = 256u << 10;  // A larger reply head fails as kInvalid.

struct Request {
  std::string method = "GET";
  std::string url;
  Headers headers = {};
  std::string body = {};
  // An upload that is read as it goes, instead of `body`: fills the buffer, returns 0 at the end.
  // `send` and `stream` call it on the caller's thread; with `start` it runs on the transport's and
  // must not block.
  std::function<base::Result<std::size_t>(char* buffer, std::size_t size)> source = {};
  std::optional<std::uint64_t> source_bytes = {};  // Known: Content-Length; else chunked.
  // Opens a connection for this request alone, so that it cannot fail on a dead one; for what is
  // costly to leave in doubt.
  bool fresh_connection = false;
  // A larger reply body fails as kInvalid; a stream has no such bound.
  std::size_t body_bytes_max = kBodyBytesMax;
};

struct Response {
  int status = 0;
  Headers headers = {};
  std::string body = {};
};

// Why there is no response. kUnavailable: no answer or a broken one; kCancelled: the stop token;
// kInvalid: the request or an oversized reply; never kRateLimited, for a 429 is a Response.
struct Failure : base::Error {
  // False only when it is certain that no byte of the request reached the other side.
  bool sent = true;
};

using Reply = base::Result<Response, Failure>;

// The failure of `what` ("pause i123") as an error.
base::Error error_of(std::string_view what, const Failure& failure);
// What an HTTP status other than a success means to who asked.
base::ErrorCode code_of_status(int status);

// For logs and messages: method, URL without user and query values, headers. Values of headers that
// carry credentials are hidden, and so is every body.
std::string describe(const Request& request);
std::string describe(const Headers& headers);
std::string describe_url(std::string_view url);

inline constexpr std::size_t kTamedBytesMax = 300;
// What a peer wrote, made fit for a message: one line, at most kTamedBytesMax bytes and "...", and
// every `secret` that it may have echoed hidden.
std::string tame(std::string_view text, std::string_view secret = {});

// The URL without slashes at its end, so that "/path" can follow.
std::string base_url(std::string url);

// Why no transport sends it: another scheme than http(s), or a method or header that could smuggle
// a line.
std::optional<Failure> objection_to(const Request& request);

// Takes a streamed body as it comes, on the caller's thread; a slow sink slows the sender down.
// `head` sees status and headers first. Either may say false: the caller has seen enough, the
// connection is closed, and the stream ends as a success.
struct Sink {
  std::function<bool(const Response& head)> head;
  std::function<bool(std::string_view bytes)> bytes;
};

// One HTTP client with its connection pool. Any status is a Response; only a missing answer is a
// Failure. Redirects are not followed. Safe to call from many threads.
class Transport {
 public:
  virtual ~Transport() = default;

  // Blocks until the whole reply is here, `timeout` has passed, or `stop` is asked for.
  virtual Reply send(const Request& request, base::Milliseconds timeout, std::stop_token stop) = 0;

  // The same without blocking; `done` runs once, on a thread of the transport, and must be short.
  // It may start other requests, and never send or stream.
  virtual void start(Request request, base::Milliseconds timeout,
                     std::function<void(Reply)> done) = 0;

  // Blocks while the body flows into `sink`; `idle_timeout` is the longest silence. The reply has
  // no body.
  virtual Reply stream(const Request& request, const Sink& sink, base::Milliseconds idle_timeout,
                       std::stop_token stop) = 0;
};

}  // namespace net
