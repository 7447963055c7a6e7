#pragma once

#include <curl/curl.h>

#include <memory>

#include "libs/net/curl_transport.h"
#include "libs/net/exchange.h"

// One request on libcurl: its options, and the callbacks that carry its bytes. Included by the
// transport alone.
namespace net {

struct CurlEasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct CurlListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

struct CurlExchange : Exchange {
  std::unique_ptr<CURL, CurlEasyDeleter> easy;
  std::unique_ptr<curl_slist, CurlListDeleter> header_list, connect_list;
  std::size_t head_bytes = 0;
  bool head_whole = false;
};

// Makes `easy`; false when memory is out. `options` outlives it.
bool prepare(CurlExchange& exchange, const ConnectionOptions& options);
// What libcurl's last word means.
Reply outcome_of(CurlExchange& exchange, CURLcode code);

}  // namespace net
