#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "controller/attach/certificate_keeper.h"
#include "controller/attach/service.h"

namespace controller {

struct DoorSettings {
  std::string address = "0.0.0.0";
  std::uint16_t port = 0;  // 0: any free one.
  KeeperSettings certificates;
  // How often the certificates are looked at; sooner while there are none.
  base::Milliseconds look{600'000}, look_while_closed{5'000};
};

// The attach service over HTTPS, its certificates kept current by a thread of its own. It opens as
// soon as there is a certificate: a door that cannot open yet says so and goes on trying.
class Door {
 public:
  Door(AttachService& service, kube::Client& client, const base::Clock& clock,
       DoorSettings settings);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // 0 while it is not open.
  std::uint16_t port() const;

 private:
  void run(const std::stop_token& stop);
  base::Result<base::Done> turn(const std::stop_token& stop);
  base::Result<base::Done> serve(const base::Certified& identity);

  AttachService& service_;
  const DoorSettings settings_;
  CertificateKeeper keeper_;
  base::Certified served_;  // By the server; of the thread alone.
  mutable std::mutex mutex_;
  std::unique_ptr<net::HttpServer> server_;
  std::jthread thread_;  // Last: it uses all of the above.
};

}  // namespace controller
