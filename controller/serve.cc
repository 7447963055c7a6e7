#include "controller/serve.h"

#include <unistd.h>

#include <utility>

#include "libs/base/files.h"
#include "libs/base/json.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"
#include "libs/net/server/routes.h"

namespace controller {
namespace {

struct Address {
  std::string host;
  std::uint16_t port = 0;
};

// --metrics-address may carry the port; --metrics-port fills in.
base::Result<Address> address_of(const Options& options) {
  const std::string& text = options.metrics_address;
  Address address{text, static_cast<std::uint16_t>(options.metrics_port)};
  const auto colon = text.rfind(':');
  const bool has_port =
      colon != std::string::npos && (text.find(':') == colon || text[colon - 1] == ']');
  if (!has_port) return address;
  const auto port = base::parse_integer(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65'535)
    return base::error(base::ErrorCode::kInvalid, "--metrics-address ", text,
                       ": the port is not a number from 0 to 65535");
  address.host = text.substr(0, colon);
  if (address.host.starts_with('[')) address.host = address.host.substr(1, address.host.size() - 2);
  address.port = static_cast<std::uint16_t>(*port);
  return address;
}

std::string url_of(const Options& options, const net::HttpServer& server) {
  const auto address = address_of(options);
  const std::string host = address ? address->host : options.metrics_address;
  const bool v6 = host.find(':') != std::string::npos;
  return "http://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(server.port());
}

}  // namespace

Signals::Signals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
}

void Signals::wait() const {
  int number = 0;
  while (sigwait(&set_, &number) != 0) {
  }
}

void Signals::raise() const { ::kill(::getpid(), SIGTERM); }

base::Result<std::unique_ptr<net::HttpServer>> serve(const Options& options,
                                                     metrics::Registry& registry,
                                                     std::function<std::string()> trouble) {
  TRY(const Address address, address_of(options));
  return net::HttpServer::start(
      {.address = address.host, .port = address.port},
      net::route({{"GET", "/metrics",
                   [&registry](const net::ServedRequest&) {
                     return net::ServedAnswer{200, registry.expose(),
                                              std::string(metrics::kContentType)};
                   }},
                  {"GET", "/healthz", net::probe([] { return std::string(); })},
                  {"GET", "/readyz", net::probe(std::move(trouble))}}));
}

base::Result<base::Done> say_ready(const Options& options, const net::HttpServer& server) {
  const std::string url = url_of(options, server);
  base::log::info("ready", {{"metrics", url + "/metrics"}});
  if (options.ready_file.empty()) return base::Done{};
  const base::Json told = {
      {"url", url}, {"metrics_url", url + "/metrics"}, {"port", server.port()}};
  return base::write_file_atomically(options.ready_file, base::to_text(told) + "\n", 0644);
}

}  // namespace controller
