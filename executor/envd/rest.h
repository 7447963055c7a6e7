#pragma once

#include <memory>
#include <string_view>

#include "executor/envd/daemon.h"
#include "libs/aio/http_server.h"
#include "libs/aio/task.h"

// The part of envd's API that is plain HTTP. Errors are {"code": <status>, "message": ...}.
namespace executor {

using Exchange = std::shared_ptr<aio::HttpExchange>;
using RestHandler = aio::Task<> (*)(std::shared_ptr<Daemon>, Exchange);

// The handler of a path; 405 and 404 answer by themselves.
RestHandler find_rest_handler(std::string_view method, std::string_view path);

aio::Task<> reply_json(Exchange exchange, int status, base::Json body);
aio::Task<> reply_error(Exchange exchange, int status, std::string message);

// rest_state.cc
aio::Task<> get_health(std::shared_ptr<Daemon> daemon, Exchange exchange);
aio::Task<> post_init(std::shared_ptr<Daemon> daemon, Exchange exchange);
aio::Task<> get_envs(std::shared_ptr<Daemon> daemon, Exchange exchange);
aio::Task<> get_metrics(std::shared_ptr<Daemon> daemon, Exchange exchange);
// rest_download.cc
aio::Task<> get_files(std::shared_ptr<Daemon> daemon, Exchange exchange);
// rest_upload.cc
aio::Task<> post_files(std::shared_ptr<Daemon> daemon, Exchange exchange);
aio::Task<> post_compose(std::shared_ptr<Daemon> daemon, Exchange exchange);

// The user and path of a file request that may be signed instead of carrying the token; replies by
// itself and gives nothing when it is refused.
struct FileAsk {
  User user;
  std::string path;  // Absolute. Of the query's path, which may have been left out.
  bool path_given = false;
};
aio::Task<std::optional<FileAsk>> admit_file_request(std::shared_ptr<Daemon> daemon,
                                                     Exchange exchange, std::string_view operation);
int rest_status(const FileError& error);

}  // namespace executor
