#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "libs/api/sandbox.h"
#include "libs/base/result.h"
#include "libs/base/unix_socket.h"

namespace controller {

// Who asks for the way into a sandbox, as far as the door can tell.
struct Asker {
  std::string client;  // The address; empty over a Unix socket.
  std::string token;   // What it showed; secret.
  std::optional<base::Peer> peer = {};
};

// Who gets in. Safe to ask from many threads.
class Access {
 public:
  virtual ~Access() = default;
  // The name under which the asker is known. kDenied: no; kRateLimited: too many questions from
  // there, with the time to wait; kUnavailable: nobody could say, which is no refusal.
  virtual base::Result<std::string> admit(const Asker& asker, const api::Key& sandbox,
                                          std::stop_token stop) = 0;
};

}  // namespace controller
