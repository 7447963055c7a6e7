#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "libs/kube/testing/fake_server.h"

namespace controller {

// Objects as an API server keeps them, by path, with optimistic locking. Safe to use from many
// threads, but for what a test arranges.
class KeptObjects {
 public:
  net::Answer answer(const net::Request& request) {
    std::lock_guard lock(mutex_);
    const std::string path = request.url.substr(std::string("https://api.test").size());
    const std::string one = path.substr(0, path.find('?'));
    if (before_each) before_each(request);
    if (request.method == "GET") return objects.contains(one) ? ok(objects[one]) : list(one);
    const base::Json sent = *base::parse_json(request.body);
    if (request.method == "POST") {
      const std::string made = one + "/" + sent["metadata"]["name"].get<std::string>();
      if (objects.contains(made)) return refuse(409, "AlreadyExists");
      return ok(put(made, sent));
    }
    if (!objects.contains(one)) return refuse(404, "NotFound");
    base::Json changed = objects[one];
    if (sent["metadata"]["resourceVersion"] != changed["metadata"]["resourceVersion"])
      return refuse(409, "Conflict");
    changed.merge_patch(sent);
    return ok(put(one, changed));
  }
  // As somebody else would, at any time.
  void replace(const std::string& path, base::Json object) {
    std::lock_guard lock(mutex_);
    put(path, std::move(object));
  }
  void erase(const std::string& path) {
    std::lock_guard lock(mutex_);
    objects.erase(path);
  }
  std::optional<base::Json> find(const std::string& path) {
    std::lock_guard lock(mutex_);
    return objects.contains(path) ? std::optional(objects[path]) : std::nullopt;
  }
  // Before anybody asks, or within before_each.
  base::Json put(const std::string& path, base::Json object) {
    object["metadata"]["uid"] = "uid-" + path;
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    return objects[path] = std::move(object);
  }

  std::map<std::string, base::Json> objects;
  std::function<void(const net::Request&)> before_each;  // It may ask as well.

 private:
  // Collections end in the plural of a kind, and names here never do.
  net::Answer list(const std::string& path) {
    if (!path.ends_with("/leases")) return refuse(404, "NotFound");
    base::Json items = base::Json::array();
    for (const auto& [name, object] : objects)
      if (name.starts_with(path + "/")) items.push_back(object);
    return ok({{"metadata", {{"resourceVersion", std::to_string(version_)}}}, {"items", items}});
  }
  static net::Answer ok(const base::Json& object) {
    return net::answer(200, base::to_text(object));
  }
  static net::Answer refuse(int status, const char* reason) {
    return net::answer(status, base::to_text(base::Json{{"kind", "Status"},
                                                        {"status", "Failure"},
                                                        {"message", "no"},
                                                        {"reason", reason},
                                                        {"code", status}}));
  }
  std::recursive_mutex mutex_;
  int version_ = 0;
};

}  // namespace controller
