#include "agentd/serve.h"

#include <unistd.h>

#include <utility>

#include "libs/base/files.h"
#include "libs/base/json.h"
#include "libs/base/log.h"
#include "libs/net/server/routes.h"

namespace agentd {
namespace {

constexpr std::size_t kScrapersMax = 16;  // They take no descriptors that links are to have.

}  // namespace

base::Result<std::unique_ptr<net::HttpServer>> serve_metrics(const Options& options,
                                                             metrics::Registry& registry,
                                                             std::function<std::string()> trouble) {
  return net::HttpServer::start(
      {.address = options.metrics_address,
       .port = static_cast<std::uint16_t>(options.metrics_port),
       .connections_max = kScrapersMax},
      net::route({{"GET", "/metrics",
                   [&registry](const net::ServedRequest&) {
                     return net::ServedAnswer{200, registry.expose(),
                                              std::string(metrics::kContentType)};
                   }},
                  {"GET", "/healthz", net::probe([] { return std::string(); })},
                  {"GET", "/readyz", net::probe(std::move(trouble))}}));
}

base::Result<base::Done> say_ready(const Options& options, const net::HttpServer& server,
                                   const TcpDoor* tcp) {
  const bool v6 = options.metrics_address.find(':') != std::string::npos;
  const std::string host = v6 ? "[" + options.metrics_address + "]" : options.metrics_address;
  const std::string url = "http://" + host + ":" + std::to_string(server.port());
  base::log::info("ready", {{"socket", options.socket}, {"metrics", url + "/metrics"}});
  if (options.ready_file.empty()) return base::Done{};
  const base::Json told = {{"socket", options.socket},
                           {"port", tcp ? base::Json(tcp->port()) : base::Json()},
                           {"url", url},
                           {"pid", ::getpid()}};
  return base::write_file_atomically(options.ready_file, base::to_text(told) + "\n", 0644);
}

}  // namespace agentd
