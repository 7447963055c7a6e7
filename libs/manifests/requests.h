#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "libs/api/sandbox.h"

namespace manifests {

// What may be asked of a running controller through STATE/requests: one JSON file each, taken once.
struct Request {
  enum class Kind {
    kDelete,        // Of `key`; its manifest, if it stays, is passed over until it changes.
    kReconcile,     // Looks at `key` again now.
    kWake,          // Resumes `key`, if it is paused because it idled.
    kRecreate,      // Of `key`: forgets that it was deleted while its manifest stayed.
    kReleaseBrake,  // Lets the removals go on that the brake holds back.
  };
  Kind kind = Kind::kReconcile;
  api::Key key = {};
  std::string uid = {};  // Empty: whichever has that name when the request is taken.
  std::optional<api::DeletionPolicy> policy = {};  // kDelete: instead of the spec's.
  bool operator==(const Request&) const = default;
};

struct RequestResult {
  bool done = false;
  std::string message;
  bool operator==(const RequestResult&) const = default;
};

// Returns the id by which to ask for the result.
base::Result<std::string> write_request(const std::filesystem::path& state, const Request& request);
// Nothing: not taken yet. kNotFound: no such request, or its result is no longer kept.
base::Result<std::optional<RequestResult>> request_result(const std::filesystem::path& state,
                                                          const std::string& id);

base::Json to_json(const Request& request);
base::Result<Request> request_from_json(const base::Json& json);

}  // namespace manifests
