#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "agentd/dial/dial.h"
#include "libs/aio/stream.h"
#include "libs/aio/tls/tls.h"

namespace agentd {

// How the attach service is reached.
class Line {
 public:
  virtual ~Line() = default;
  // A connection for one question.
  virtual aio::Task<base::Result<std::shared_ptr<aio::Stream>>> open(base::Milliseconds limit) = 0;
  virtual std::string host() const = 0;    // For the field Host.
  virtual std::string prefix() const = 0;  // Before the service's own path.
};

// A Unix socket, such as a controller has in its state folder.
class SocketLine final : public Line {
 public:
  SocketLine(aio::Executor executor, std::filesystem::path path)
      : executor_(std::move(executor)), path_(std::move(path)) {}
  aio::Task<base::Result<std::shared_ptr<aio::Stream>>> open(base::Milliseconds limit) override;
  std::string host() const override { return "attach"; }
  std::string prefix() const override { return ""; }

 private:
  const aio::Executor executor_;
  const std::filesystem::path path_;
};

// HTTPS.
class SecureLine final : public Line {
 public:
  // `authorities`: a file in PEM of whom to believe, read anew as often as it changes; none: those
  // of the system.
  SecureLine(Place place, std::filesystem::path authorities, Names& names)
      : place_(std::move(place)), authorities_(std::move(authorities)), names_(names) {}
  aio::Task<base::Result<std::shared_ptr<aio::Stream>>> open(base::Milliseconds limit) override;
  std::string host() const override { return place_.authority(); }
  std::string prefix() const override { return place_.path; }

 private:
  base::Result<base::Done> follow_authorities();

  const Place place_;
  const std::filesystem::path authorities_;
  Names& names_;
  std::string believed_;  // What stood in the file when `tls_` was made.
  std::optional<aio::TlsClient> tls_;
};

}  // namespace agentd
