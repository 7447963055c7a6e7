#pragma once

#include <string>

#include "libs/envd/sandbox.h"
#include "libs/net/transport.h"

namespace envd {

struct ClientOptions {
  std::string envd_version = {};       // As the control plane tells it; empty counts as the oldest.
  base::Milliseconds timeout{30'000};  // Of one unary call.
  base::Milliseconds transfer_timeout{300'000};  // Of one upload or download.
  // Ends a message that says that the way led to no envd: what to check, and where.
  std::string advice = {};
};

// envd over HTTP: its REST files and its Connect services in JSON. Not one byte of it needs HTTP/2.
// No call lasts for ever, whatever envd sends: a stream is given up at the first bytes after its
// time, or when it is silent for as long again. How long a process that goes on writing is listened
// to is its listener's to say.
class Client final : public Sandbox {
 public:
  Client(net::Transport& transport, const base::Clock& clock, Route route,
         ClientOptions options = {});

  base::Result<base::Done> health(std::stop_token stop) override;
  base::Result<std::optional<Entry>> stat(const std::string& path, const std::string& user,
                                          std::stop_token stop) override;
  base::Result<base::Done> upload(const std::string& path, std::string_view content,
                                  const std::string& user, std::stop_token stop) override;
  base::Result<std::string> download(const std::string& path, const std::string& user,
                                     std::stop_token stop) override;
  base::Result<Finished> run(const Command& command, base::Milliseconds timeout,
                             std::stop_token stop) override;
  base::Result<std::optional<Finished>> start(const Command& command, base::Milliseconds silence,
                                              const Listener& listener,
                                              std::stop_token stop) override;

 private:
  net::Transport& transport_;
  const base::Clock& clock_;
  const Route route_;
  const ClientOptions options_;
};

}  // namespace envd
