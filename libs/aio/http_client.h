#pragma once

#include <memory>
#include <string>

#include "libs/aio/http_server.h"
#include "libs/aio/stream.h"
#include "libs/aio/task.h"
#include "libs/base/clock.h"
#include "libs/base/result.h"

namespace aio {

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";
  HttpFields fields = {};
  std::string body = {};
};

// One request over a connected stream, and its whole reply (at most `body_bytes_max`). The stream
// carries no second one. kUnavailable: no whole reply came within `timeout`.
Task<base::Result<HttpReply>> exchange(std::shared_ptr<Stream> stream, HttpRequest request,
                                       base::Milliseconds timeout,
                                       std::size_t body_bytes_max = 1u << 20);

}  // namespace aio
