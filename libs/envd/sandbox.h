#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/result.h"
#include "libs/net/transport.h"

// A client of envd, the daemon inside an E2B sandbox (TCP 49983): the small part that brings our
// executor to life. Wire facts: docs/design/provider-wire.md.
namespace envd {

inline constexpr int kEnvdPort = 49983;

enum class Routing { kSubdomain, kHeader, kPathPrefix };

// Where a provider's sandboxes are reached. kSubdomain: the host of `url` gets "<port>-<id>."
// before it; kHeader: `url` as it is, plus E2b-Sandbox-Id and E2b-Sandbox-Port; kPathPrefix:
// "<url>/<id>/<port>".
struct DataPlane {
  std::string url;
  Routing routing = Routing::kSubdomain;
};
// The same in the domain that a provider names for one sandbox (some live on clusters of their
// own): kSubdomain has it as host, kHeader behind "sandbox." where `plane` has such a host.
// Whatever is no host name is not followed.
DataPlane in_domain(const DataPlane& plane, const std::optional<std::string>& domain);

// One port of one sandbox: a base URL and the headers that every request to it carries.
struct Route {
  std::string url;
  net::Headers headers;  // Routing, access tokens. Secret: printed nowhere.
};
Route route_to(const DataPlane& plane, const std::string& sandbox_id, int port,
               const std::optional<std::string>& envd_access_token,
               const std::optional<std::string>& traffic_access_token);

struct Command {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH; no shell is added.
  std::map<std::string, std::string> env = {};
  std::optional<std::string> cwd = {};
  std::string user = {};  // Empty: the sandbox's default user.
};

struct Finished {
  int exit_code = 0;                 // -1 when a signal ended it.
  std::string output, error_output;  // The first kOutputBytesMax of each.
  bool cut = false;
};
inline constexpr std::size_t kOutputBytesMax = 1u << 20;

// A process that was started, for who listens to it.
class Started {
 public:
  virtual ~Started() = default;
  virtual std::uint32_t pid() const = 0;          // Inside.
  virtual const std::string& output() const = 0;  // All of it so far, up to kOutputBytesMax.
  // To its stdin, kInputBytesMax at most.
  virtual base::Result<base::Done> write(std::string_view input) = 0;
};
inline constexpr std::size_t kInputBytesMax = 1u << 20;

enum class Next { kListen, kLeave };
// Called when it has begun and whenever it has written something. It may call others meanwhile,
// also the same sandbox.
using Listener = std::function<base::Result<Next>(Started& process)>;

struct Entry {
  std::string path;
  bool is_folder = false;
  bool is_symlink = false;
  std::uint64_t size = 0;
  std::uint32_t mode = 0;  // Permission bits.
  std::string owner;
};

// Failures: kUnavailable (no answer, or the edge says the sandbox is not running), kDenied (token),
// kNotFound, kInvalid. Every call is safe to repeat but run and start.
class Sandbox {
 public:
  virtual ~Sandbox() = default;
  virtual base::Result<base::Done> health(std::stop_token stop) = 0;
  virtual base::Result<std::optional<Entry>> stat(const std::string& path, const std::string& user,
                                                  std::stop_token stop) = 0;
  virtual base::Result<base::Done> upload(const std::string& path, std::string_view content,
                                          const std::string& user, std::stop_token stop) = 0;
  virtual base::Result<std::string> download(const std::string& path, const std::string& user,
                                             std::stop_token stop) = 0;
  // Runs to its end, at most `timeout`, after which the process is killed.
  virtual base::Result<Finished> run(const Command& command, base::Milliseconds timeout,
                                     std::stop_token stop) = 0;
  // Starts it and listens until `listener` leaves it running, which gives nothing, or it ends,
  // which gives how. It is a failure when it writes nothing for as long as `silence`. Only a
  // failure of `listener` ends it: nobody then knows what it would go on with.
  virtual base::Result<std::optional<Finished>> start(const Command& command,
                                                      base::Milliseconds silence,
                                                      const Listener& listener,
                                                      std::stop_token stop) = 0;
};

}  // namespace envd
