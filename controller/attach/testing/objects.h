#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "libs/base/json.h"
#include "libs/net/testing/fake_transport.h"

namespace controller {

// An API server's objects by path, and the few verbs that a keeper of certificates needs.
class Objects {
 public:
  net::Answer answer(const net::Request& request) {
    std::lock_guard lock(mutex);
    const std::string path = request.url.substr(0, request.url.find('?'));
    if (before) std::exchange(before, nullptr)(request);
    if (request.method == "GET") return found(path);
    base::Json object = base::Json::parse(request.body);
    if (request.method == "POST") {
      const std::string own = path + "/" + object["metadata"]["name"].get<std::string>();
      if (objects.contains(own)) return status(409, "AlreadyExists");
      return put(own, object);
    }
    return request.headers.find("Content-Type") == "application/merge-patch+json"
               ? merge(path, object)
               : put(path, object);  // An apply.
  }

  std::recursive_mutex mutex;
  std::map<std::string, base::Json> objects;
  int writes = 0;
  std::function<void(const net::Request&)> before;  // Once, before the next request.

 private:
  net::Answer found(const std::string& path) {
    return objects.contains(path) ? net::answer(200, objects[path].dump())
                                  : status(404, "NotFound");
  }
  net::Answer merge(const std::string& path, const base::Json& change) {
    const auto found = objects.find(path);
    if (found == objects.end()) return status(404, "NotFound");
    base::Json object = found->second;
    object.merge_patch(change);
    if (object["metadata"] != found->second["metadata"]) return status(409, "Conflict");
    return put(path, object);
  }
  net::Answer put(const std::string& path, base::Json object) {
    object["metadata"]["resourceVersion"] = std::to_string(++writes);
    objects[path] = object;
    return net::answer(200, object.dump());
  }
  static net::Answer status(int code, const char* reason) {
    return net::answer(
        code, base::Json{{"kind", "Status"}, {"reason", reason}, {"message", reason}}.dump());
  }
};

}  // namespace controller
