#pragma once

#include <string>

#include "libs/envd/sandbox.h"
#include "libs/net/transport.h"

namespace envd {

struct ClientOptions {
  std::string envd_version = {};  // As the control plane tells it; empty counts as the oldest.
  // Of one unary call, and of a start until its pid is told.
  base::Milliseconds timeout{30'000};
  base::Milliseconds transfer_timeout{300'000};  // Of one upload or download.
  // Ends a message that says that the way led to no envd: what to check, and where.
  std::string advice = {};
};

inline constexpr std::size_t kInputBytesMax = 1u << 20;  // What start() may feed to stdin.

// envd over HTTP: its REST files and its Connect services in JSON. Not one byte of it needs HTTP/2.
// No call lasts for ever, whatever envd sends: a stream is given up at the first bytes after its
// time, or when it is silent for as long again.
class Client final : public Sandbox {
 public:
  Client(net::Transport& transport, const base::Clock& clock, Route route,
         ClientOptions options = {});

  base::Result<base::Done> health(std::stop_token stop) override;
  base::Result<std::optional<Entry>> stat(const std::string& path, const std::string& user,
                                          std::stop_token stop) override;
  base::Result<base::Done> make_folder(const std::string& path, const std::string& user,
                                       std::stop_token stop) override;
  base::Result<base::Done> move(const std::string& from, const std::string& to,
                                const std::string& user, std::stop_token stop) override;
  base::Result<base::Done> remove(const std::string& path, const std::string& user,
                                  std::stop_token stop) override;
  base::Result<base::Done> upload(const std::string& path, std::string_view content,
                                  const std::string& user, std::stop_token stop) override;
  base::Result<std::string> download(const std::string& path, const std::string& user,
                                     std::stop_token stop) override;
  base::Result<Finished> run(const Command& command, base::Milliseconds timeout,
                             std::stop_token stop) override;
  base::Result<std::uint32_t> start(const Command& command, std::string_view input,
                                    std::stop_token stop) override;

 private:
  net::Transport& transport_;
  const base::Clock& clock_;
  const Route route_;
  const ClientOptions options_;
};

}  // namespace envd
