#include "controller/serve.h"

#include <unistd.h>

#include <utility>

#include "libs/base/files.h"
#include "libs/base/json.h"
#include "libs/base/log.h"
#include "libs/net/server/routes.h"

namespace controller {
namespace {

base::Result<Listening> address_of(const Options& options) {
  return listening_at("--metrics-address", options.metrics_address, options.metrics_port);
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
  TRY(const Listening address, address_of(options));
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
