#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "controller/attach/certificate_keeper.h"
#include "controller/attach/service.h"

namespace controller {

struct HttpsDoorSettings {
  std::string address = "0.0.0.0";
  std::uint16_t port = 0;  // 0: any free one.
  // Connections at once: from everywhere, and from one address.
  std::size_t connections_max = 256, connections_each_max = 32;
  KeeperSettings certificates;
  // How often the certificates are looked at; sooner while there are none.
  base::Milliseconds look{300'000}, look_while_closed{5'000};
};

// The attach service over HTTPS, its certificates kept current by a thread of its own. It opens as
// soon as there is a certificate: a door that cannot open yet says so and goes on trying. Its end
// cuts what it is asked right then, and waits for nobody.
class HttpsDoor {
 public:
  HttpsDoor(AttachService& service, kube::Client& client, const base::Clock& clock,
            metrics::Registry& registry, HttpsDoorSettings settings);
  ~HttpsDoor();
  HttpsDoor(const HttpsDoor&) = delete;
  HttpsDoor& operator=(const HttpsDoor&) = delete;

  // Once, when the service can answer: what it reads from is complete.
  void open();
  // 0 while it is not open.
  std::uint16_t port() const;
  // Why it is not open; empty when it is.
  std::string trouble() const;

 private:
  void run(const std::stop_token& stop);
  base::Result<base::Done> turn(const std::stop_token& stop);
  base::Result<base::Done> serve(const base::Certified& identity, const std::stop_token& stop);
  void note(const base::Result<base::Done>& turned);

  AttachService& service_;
  metrics::Registry& registry_;
  const HttpsDoorSettings settings_;
  CertificateKeeper keeper_;
  base::Certified served_;  // By the server; of the thread alone.
  mutable std::mutex mutex_;
  std::string trouble_ = "not opened yet";
  std::unique_ptr<net::HttpServer> server_;
  std::jthread thread_;  // Last: it uses all of the above.
};

}  // namespace controller
