#pragma once

#include <curl/curl.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "libs/net/curl_transport.h"

// One request on libcurl: its options, and the callbacks that carry its bytes. Included by the
// transport alone.
namespace net {

// What may wait between the curl thread and the caller's, in either direction, of one exchange.
inline constexpr std::size_t kInboxBytesMax = 1u << 20;
inline constexpr std::size_t kOutboxBytesMax = 64u << 10;

struct CurlEasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct CurlListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// One request under way. The curl thread owns `easy` and all plain fields from submission to the
// end; what it shares with a caller that pumps bytes is guarded by `mutex`.
struct CurlExchange {
  enum class Mode { kWhole, kStream };

  Mode mode = Mode::kWhole;
  const Request* request = nullptr;  // The caller's, or `own`.
  Request own;
  base::Milliseconds timeout{0};
  std::function<void(Reply)> done;  // Asynchronous only.

  std::unique_ptr<CURL, CurlEasyDeleter> easy;
  std::unique_ptr<curl_slist, CurlListDeleter> header_list;
  base::Moment deadline{};
  bool sent = false;
  Response response;
  std::size_t head_bytes = 0;
  bool head_whole = false;
  std::optional<Failure> objection;  // Why a callback broke the exchange off.
  bool read_paused = false, write_paused = false;

  std::mutex mutex;
  std::condition_variable changed;
  std::string inbox;             // Body bytes for the caller's sink.
  std::string outbox;            // Body bytes from the caller's source.
  std::optional<Response> head;  // Once it is whole.
  bool news = false;             // The head or bytes came since the caller last looked.
  bool source_wanted = false, source_ended = false;
  std::optional<Failure> source_failed;
  std::optional<Reply> reply;

  std::string what() const { return request->method + " " + describe_url(request->url); }
  Failure failure(base::ErrorCode code, std::string_view why) const;
  // The timeout, or the longest silence, begins anew.
  void wait_anew();
};

base::Moment curl_now();
// Makes `easy`; false when memory is out. `options` outlives it.
bool prepare(CurlExchange& exchange, const CurlOptions& options);
// What libcurl's last word means.
Reply outcome_of(CurlExchange& exchange, CURLcode code);

}  // namespace net
