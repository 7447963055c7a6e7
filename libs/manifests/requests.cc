#include "libs/manifests/requests.h"

#include <chrono>
#include <vector>

#include "libs/api/words.h"
#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/manifests/record.h"

namespace manifests {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

constexpr std::pair<Request::Kind, const char*> kKinds[] = {
    {Request::Kind::kDelete, "Delete"},
    {Request::Kind::kReconcile, "Reconcile"},
    {Request::Kind::kWake, "Wake"},
    {Request::Kind::kRecreate, "Recreate"},
    {Request::Kind::kReleaseBrake, "ReleaseBrake"},
};

Result<Request::Kind> kind_of(const std::string& written) {
  std::vector<std::string> words;
  for (const auto& [kind, word] : kKinds) {
    if (written == word) return kind;
    words.emplace_back(word);
  }
  return base::error(ErrorCode::kInvalid, "the kind \"", written, "\" is none of ",
                     base::join(words, ", "));
}

bool is_id(const std::string& id) {
  return !id.empty() && id.find_first_not_of("0123456789abcdef-") == std::string::npos;
}

}  // namespace

Json to_json(const Request& request) {
  Json json = Json::object();
  for (const auto& [kind, word] : kKinds)
    if (kind == request.kind) json["kind"] = word;
  if (!request.key.space.empty()) json["namespace"] = request.key.space;
  if (!request.key.name.empty()) json["name"] = request.key.name;
  if (!request.uid.empty()) json["uid"] = request.uid;
  if (request.policy) json["policy"] = api::to_word(*request.policy);
  return json;
}

Result<Request> request_from_json(const Json& json) {
  Request request;
  const std::string written = base::text_at(json, "kind").value_or("");
  TRY(request.kind, kind_of(written));
  request.key = {base::text_at(json, "namespace").value_or(""),
                 base::text_at(json, "name").value_or("")};
  if (request.key.name.empty() && request.kind != Request::Kind::kReleaseBrake)
    return base::error(ErrorCode::kInvalid, "a request of kind ", written, " needs a name");
  request.uid = base::text_at(json, "uid").value_or("");
  if (const auto policy = base::text_at(json, "policy")) {
    request.policy = api::from_word<api::DeletionPolicy>(*policy);
    if (!request.policy)
      return base::error(ErrorCode::kInvalid, "the policy \"", *policy,
                         "\" is none of Kill, Pause, Leave");
  }
  return request;
}

Result<std::string> write_request(const fs::path& state, const Request& request) {
  const Layout layout{state};
  std::error_code error;
  if (!fs::is_directory(layout.requests(), error))
    return base::error(
        ErrorCode::kNotFound, state.string(),
        " is no state folder of a controller that has run; give the folder after its --state");
  const auto time = std::chrono::duration_cast<base::Milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  // By the time first, so that requests are taken in the order in which they were made.
  const std::string id = std::to_string(time.count()) + "-" + base::random_hex(6);
  CHECK_OK(base::write_file_atomically(layout.requests() / (id + ".json"),
                                       base::to_text(to_json(request)), 0600));
  return id;
}

Result<std::optional<RequestResult>> request_result(const fs::path& state, const std::string& id) {
  const Layout layout{state};
  if (!is_id(id)) return base::error(ErrorCode::kInvalid, "\"", id, "\" is no request's id");
  // First whether it waits: it is removed only after its result was written.
  std::error_code error;
  const bool waits = fs::exists(layout.requests() / (id + ".json"), error);
  TRY(const auto json, read_json_file(layout.results() / (id + ".json")));
  if (json)
    return std::optional(RequestResult{base::bool_at(*json, "done").value_or(false),
                                       base::text_at(*json, "message").value_or("")});
  if (waits) return std::optional<RequestResult>();
  return base::error(ErrorCode::kNotFound, "no request ", id, " is known in ", state.string());
}

}  // namespace manifests
