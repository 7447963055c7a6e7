#include "libs/net/curl_exchange.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "libs/base/strings.h"

namespace net {
namespace {

using base::ErrorCode;

// libcurl calls this each time it is about to send the request on a connection: until then nothing
// was sent, and a second call is a silent second try after a reused connection died.
int on_connected(void* self, char*, char*, int, int) {
  auto& exchange = *static_cast<CurlExchange*>(self);
  if (exchange.sent && !exchange.is_repeatable()) {
    exchange.objection =
        exchange.failure(ErrorCode::kUnavailable, "the connection closed before an answer");
    return CURL_PREREQFUNC_ABORT;
  }
  exchange.sent = true;
  return CURL_PREREQFUNC_OK;
}

std::size_t on_header(char* bytes, std::size_t, std::size_t count, void* self) {
  auto& exchange = *static_cast<CurlExchange*>(self);
  if (exchange.head_whole) return count;  // Trailers say nothing we ask for.
  const std::string_view line = base::trim({bytes, count});
  exchange.head_bytes += count;
  if (!exchange.allows_head_of(exchange.head_bytes)) return 0;
  // A new head: a proxy's came before, or an interim reply, which a client that does not expect it
  // may ignore (RFC 9110 §15.2).
  if (line.starts_with("HTTP/")) {
    exchange.response = Response{};
  } else if (line.empty()) {
    long status = 0;
    curl_easy_getinfo(exchange.easy.get(), CURLINFO_RESPONSE_CODE, &status);
    exchange.response.status = static_cast<int>(status);
    exchange.head_whole = status >= 200;
    if (exchange.head_whole && exchange.mode == Exchange::Mode::kStream) exchange.show_head();
  } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
    exchange.response.headers.add(std::string(line.substr(0, colon)),
                                  std::string(base::trim(line.substr(colon + 1))));
  }
  return count;
}

std::size_t on_body(char* bytes, std::size_t, std::size_t count, void* self) {
  auto& exchange = *static_cast<CurlExchange*>(self);
  const std::string_view piece(bytes, count);
  if (exchange.mode == Exchange::Mode::kWhole) return exchange.keep(piece) ? count : 0;
  return exchange.pass_on(piece) ? count : CURL_WRITEFUNC_PAUSE;
}

std::size_t on_upload(char* buffer, std::size_t unit, std::size_t count, void* self) {
  auto& exchange = *static_cast<CurlExchange*>(self);
  if (const auto taken = exchange.take(buffer, unit * count)) return *taken;
  return exchange.objection ? CURL_READFUNC_ABORT : CURL_READFUNC_PAUSE;
}

bool has_tls(std::string_view url) {
  return base::equal_ignoring_case(url.substr(0, url.find(':')), "https");
}

// A peer that has vanished without a word is given up by the kernel after this time. Its own is a
// quarter of an hour, in which every request would be sent into the same dead shared connection.
int on_socket(void*, curl_socket_t socket, curlsocktype) {
  const unsigned unacknowledged_max_ms = 30'000;
  setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_max_ms,
             sizeof unacknowledged_max_ms);
  return CURL_SOCKOPT_OK;
}

curl_blob blob_of(const std::string& text) {
  return {const_cast<char*>(text.data()), text.size(), CURL_BLOB_COPY};
}

void set_connection(CURL* easy, const ConnectionOptions& options, const CurlExchange& exchange) {
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // Never wait for a resolver that hangs.
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
  // A connection that can be shared is worth the wait for its handshake. Without TLS there is none,
  // and libcurl would wait for the first reply instead, however long that takes.
  curl_easy_setopt(easy, CURLOPT_PIPEWAIT, has_tls(exchange.request->url) ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, long(options.connect_timeout.count()));
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  if (exchange.request->fresh_connection) curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
  if (!options.verify_server) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (options.proxy) curl_easy_setopt(easy, CURLOPT_PROXY, options.proxy->c_str());
  if (!options.ca_bundle.empty()) {
    const curl_blob blob = blob_of(options.ca_bundle);
    curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob);
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  }
  if (!options.client_certificate.empty()) {
    const curl_blob certificate = blob_of(options.client_certificate);
    const curl_blob key = blob_of(options.client_key);
    curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &certificate);
    curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &key);
  }
}

struct CurlUrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};

std::string part_of(CURLU* url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string copy = text;
  curl_free(text);
  return copy;
}

// libcurl takes the name that TLS asks for and checks from the URL. So another name goes there, and
// what the URL said stays where we connect to and in the Host header, which is given back.
std::string set_url(CURL* easy, CurlExchange& exchange, const ConnectionOptions& options) {
  const std::unique_ptr<CURLU, CurlUrlDeleter> url(curl_url());
  const bool renamed =
      !options.tls_server_name.empty() &&
      curl_url_set(url.get(), CURLUPART_URL, exchange.request->url.c_str(), 0) == CURLUE_OK;
  if (!renamed) {
    curl_easy_setopt(easy, CURLOPT_URL, exchange.request->url.c_str());
    return {};
  }
  const std::string host = part_of(url.get(), CURLUPART_HOST, 0);
  const std::string port = part_of(url.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT);
  curl_url_set(url.get(), CURLUPART_HOST, options.tls_server_name.c_str(), 0);
  exchange.connect_list.reset(curl_slist_append(
      nullptr, (options.tls_server_name + ":" + port + ":" + host + ":" + port).c_str()));
  curl_easy_setopt(easy, CURLOPT_CONNECT_TO, exchange.connect_list.get());
  curl_easy_setopt(easy, CURLOPT_URL, part_of(url.get(), CURLUPART_URL, 0).c_str());
  const std::string named_port = part_of(url.get(), CURLUPART_PORT, 0);
  return named_port.empty() ? host : host + ":" + named_port;
}

void set_body(CURL* easy, CurlExchange& exchange) {
  const Request& request = *exchange.request;
  if (request.source) {
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_upload);
    curl_easy_setopt(easy, CURLOPT_READDATA, &exchange);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE,
                     request.source_bytes ? curl_off_t(*request.source_bytes) : curl_off_t(-1));
  } else if (!request.body.empty() || request.method == "POST" || request.method == "PUT") {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  } else if (request.method == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    return;
  } else {
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
  }
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

void set_headers(CURL* easy, CurlExchange& exchange, const std::string& host) {
  curl_slist* list = nullptr;
  const auto add = [&](const std::string& line) { list = curl_slist_append(list, line.c_str()); };
  for (const Header& header : exchange.request->headers.all())
    add(header.value.empty() ? header.name + ";" : header.name + ": " + header.value);
  // libcurl adds these two by itself; nobody asked for them.
  if (!exchange.request->headers.find("Content-Type")) add("Content-Type:");
  add("Expect:");
  if (!host.empty() && !exchange.request->headers.find("Host")) add("Host: " + host);
  exchange.header_list.reset(list);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, list);
}

}  // namespace

bool prepare(CurlExchange& exchange, const ConnectionOptions& options) {
  exchange.easy.reset(curl_easy_init());
  CURL* easy = exchange.easy.get();
  if (easy == nullptr) return false;
  const std::string host = set_url(easy, exchange, options);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &exchange);
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &exchange);
  set_connection(easy, options, exchange);
  set_body(easy, exchange);
  set_headers(easy, exchange, host);
  return true;
}

Reply outcome_of(CurlExchange& exchange, CURLcode code) {
  if (exchange.objection) return *std::move(exchange.objection);
  // libcurl takes a connection that closes within the head for a reply without a body.
  if (code == CURLE_OK && exchange.head_whole) return std::move(exchange.response);
  if (code == CURLE_OK) code = CURLE_GOT_NOTHING;
  std::string why = curl_easy_strerror(code);
  if (exchange.sent && exchange.head_whole) why += " (the reply broke off)";
  const bool hopeless = !exchange.sent && code == CURLE_URL_MALFORMAT;
  return exchange.failure(hopeless ? ErrorCode::kInvalid : ErrorCode::kUnavailable, why);
}

}  // namespace net
