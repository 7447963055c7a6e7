#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "libs/base/json.h"
#include "libs/kube/connection.h"
#include "libs/kube/refusal.h"
#include "libs/kube/resource.h"
#include "libs/kube/watch.h"

namespace kube {

// Which objects a list or a watch is about.
struct Scope {
  std::string space = {};  // Empty: every namespace.
  std::string label_selector = {}, field_selector = {};
  bool operator==(const Scope&) const = default;
};

inline constexpr int kPageSize = 500;
inline constexpr std::size_t kPageBytesMax = 256u << 20;        // Of one page.
inline constexpr std::size_t kWholeListBytesMax = 1024u << 20;  // Of a list without pages.

struct PageRequest {
  int limit = kPageSize;  // 0: the whole list at once.
  std::string continue_token = {};
  std::string resource_version = {};        // Empty: as of now.
  std::string resource_version_match = {};  // "NotOlderThan" or "Exact".
};

struct Page {
  std::vector<base::Json> items = {};  // With apiVersion and kind.
  std::string resource_version = {};
  std::string continue_token = {};  // Empty: this is the last page.
  std::int64_t remaining = 0;       // At least so many follow, where the server says.
};

// What must still hold for a write to be taken; else it fails as kConflict and nothing changes.
struct Preconditions {
  std::string uid = {}, resource_version = {};  // Empty: any.
};

struct WriteOptions {
  std::string subresource = {};  // "status"
  bool dry_run = false;          // Judged and answered, not kept.
  bool strict = false;  // Fields that the server does not know are refused, else they are dropped.
};

// RFC 6902: all of it or nothing.
class JsonPatch {
 public:
  JsonPatch& test(const std::string& pointer, base::Json value);
  JsonPatch& add(const std::string& pointer, base::Json value);  // Also replaces.
  JsonPatch& replace(const std::string& pointer, base::Json value);
  JsonPatch& remove(const std::string& pointer);
  const base::Json& operations() const { return operations_; }

 private:
  base::Json operations_ = base::Json::array();
};

enum class Propagation { kOfKind, kBackground, kForeground, kOrphan };

struct DeleteOptions {
  Preconditions preconditions = {};
  Propagation propagation = Propagation::kOfKind;  // kOfKind: as that kind has it by default.
  std::optional<base::Seconds> grace = {};
  bool dry_run = false;
};

struct WatchRequest {
  std::string resource_version = {};  // Events after this one.
  base::Seconds timeout{300};         // When the server ends the watch.
  // The longest silence. Servers send bookmarks each minute; where they do not, a silent watch ends
  // and can begin anew where it was.
  base::Milliseconds silence_max{150'000};
  // Begin with every object as kAdded, then a bookmark that says so (kube-apiserver 1.34 on).
  bool initial_events = false;
};

struct ClientSettings {
  std::string field_manager = "sandfleet-controller";
  base::Milliseconds timeout{30'000};       // Of one object's request.
  base::Milliseconds list_timeout{60'000};  // Of one page.
};

// The API server's verbs, blocking. An object is JSON as the server printed it. A refusal names the
// verb and the object. Nothing is tried twice by itself. Safe to call from many threads.
class Client {
 public:
  explicit Client(Connection& connection, ClientSettings settings = {});

  Answer<base::Json> get(const Resource& resource, const api::Key& key, std::stop_token stop = {});
  Answer<Page> list(const Resource& resource, const Scope& scope, const PageRequest& page,
                    std::stop_token stop = {});
  // kAlreadyExists: one of that name is there. metadata.namespace says where.
  Answer<base::Json> create(const Resource& resource, const base::Json& object,
                            const WriteOptions& options = {}, std::stop_token stop = {});
  // Replaces the whole object, or its status; what `object` itself says of uid and resourceVersion
  // is replaced by `expected` where that says something.
  Answer<base::Json> update(const Resource& resource, base::Json object,
                            const Preconditions& expected, const WriteOptions& options = {},
                            std::stop_token stop = {});
  // kPatchUnfit: a test did not hold.
  Answer<base::Json> patch(const Resource& resource, const api::Key& key, const JsonPatch& patch,
                           const WriteOptions& options = {}, std::stop_token stop = {});
  // RFC 7396; lists are replaced whole, null removes.
  Answer<base::Json> merge(const Resource& resource, const api::Key& key, base::Json change,
                           const Preconditions& expected, const WriteOptions& options = {},
                           std::stop_token stop = {});
  // Server-side apply of `object`, which has apiVersion, kind and metadata.name and holds all
  // fields that our field manager means to own. kConflict: others own some, and `force` was not
  // asked for.
  Answer<base::Json> apply(const Resource& resource, const base::Json& object, bool force,
                           const WriteOptions& options = {}, std::stop_token stop = {});
  // The object as it stays until its finalizers are gone; nothing when it is gone already.
  Answer<std::optional<base::Json>> remove(const Resource& resource, const api::Key& key,
                                           const DeleteOptions& options = {},
                                           std::stop_token stop = {});
  // For what is no object: discovery, the version.
  Answer<base::Json> fetch(const std::string& path, std::stop_token stop = {});
  // For what is no object of a collection: TokenReview, SubjectAccessReview, a subresource.
  Answer<base::Json> post(const std::string& path, const base::Json& body,
                          std::stop_token stop = {});

  // Hands every event to `take` as it comes, until the server ends the watch (Done), `take` says
  // false (Done), or it fails. An ERROR event is a failure: kExpired, list again.
  Answer<base::Done> watch(const Resource& resource, const Scope& scope,
                           const WatchRequest& request,
                           const std::function<bool(WatchEvent&&)>& take, std::stop_token stop);

  const Config& config() const { return connection_.config(); }

 private:
  Answer<base::Json> send(std::string_view what, net::Request request, base::Milliseconds timeout,
                          std::stop_token stop);
  std::string write_query(const WriteOptions& options, bool forced = false) const;

  Connection& connection_;
  const ClientSettings settings_;
};

}  // namespace kube
