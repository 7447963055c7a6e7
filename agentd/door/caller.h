#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "libs/aio/stream.h"

namespace agentd {

// Who has connected, as far as its door can tell.
struct Caller {
  std::string name;                                 // For the log.
  std::optional<std::string> token = std::nullopt;  // What its hello must show; secret.
};

// Takes a connection.
using Serve = std::function<void(std::shared_ptr<aio::Stream> harness, Caller caller)>;

}  // namespace agentd
