#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
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
  virtual base::Result<base::Done> make_folder(const std::string& path, const std::string& user,
                                               std::stop_token stop) = 0;
  virtual base::Result<base::Done> move(const std::string& from, const std::string& to,
                                        const std::string& user, std::stop_token stop) = 0;
  virtual base::Result<base::Done> remove(const std::string& path, const std::string& user,
                                          std::stop_token stop) = 0;
  virtual base::Result<base::Done> upload(const std::string& path, std::string_view content,
                                          const std::string& user, std::stop_token stop) = 0;
  virtual base::Result<std::string> download(const std::string& path, const std::string& user,
                                             std::stop_token stop) = 0;
  // Runs to its end, at most `timeout`, after which the process is killed.
  virtual base::Result<Finished> run(const Command& command, base::Milliseconds timeout,
                                     std::stop_token stop) = 0;
  // Starts it, feeds `input` to its stdin, closes that, and leaves it running. Gives its pid
  // inside.
  virtual base::Result<std::uint32_t> start(const Command& command, std::string_view input,
                                            std::stop_token stop) = 0;
};

}  // namespace envd
