#pragma once

#include <string>

#include "libs/aio/http_server.h"
#include "libs/base/json.h"
#include "libs/base/result.h"

namespace local_e2b {

// Why a request was not done, as the HTTP status that says so. error_code is the API's optional
// machine word.
struct Refusal : base::Error {
  int status = 500;
  std::string error_code = {};
};
Refusal refuse(int status, std::string message, std::string error_code = "");
Refusal invalid(std::string message);  // 400, with the prefix of the API's schema validation.
Refusal not_found(const std::string& sandbox_id);

template <typename T>
using Outcome = base::Result<T, Refusal>;

aio::HttpReply answer(int status, const base::Json& body);
aio::HttpReply answer(int status);
// {"code": <number>, "message": ...}: clients read the code in the body, not the status. A failure
// after which a repeat could do the work twice says Should-Retry: false.
aio::HttpReply answer(const Refusal& refusal);

}  // namespace local_e2b
