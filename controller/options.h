#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/flags.h"

namespace controller {

// What people can set; the defaults are what --help shows.
struct Options {
  // A folder.
  std::string manifests, state;
  bool claim_moved_manifests = false;
  std::string attach_socket;        // Empty: in the state folder.
  std::string attach_socket_group;  // A name or a number; empty: nobody else.
  // A cluster, which it is without them.
  std::string kubeconfig, context;
  std::string watched_namespace, own_namespace;
  std::string release = "sandfleet";
  std::int64_t shards = 1;
  std::int64_t lease_seconds = 15;
  std::string http_transport = "cpprest";
  std::string attach_address;  // Empty: nobody may attach.
  std::int64_t attach_port = 0;
  std::vector<std::string> attach_names;
  std::string attach_secret;  // Somebody else's; empty: ours.
  std::int64_t attach_look_seconds = 300;
  // Either.
  std::string fleet_id;
  std::vector<std::string> executors;
  std::vector<std::string> api_key_files;  // "[PROVIDER=]PATH"
  std::string metrics_address = "127.0.0.1";
  std::int64_t metrics_port = 0;
  std::string ready_file;
  std::string probe;  // Ask this URL, and do nothing else.
  std::int64_t workers = 8;
  std::int64_t operations = 48;
  std::int64_t poll_seconds = 30;
  std::int64_t sweep_seconds = 60;
  std::int64_t grace_seconds = 120;
  std::int64_t executor_check_seconds = 300;
  std::string log_level = "info";
  std::string log_format = "text";

  bool has_folder() const { return !manifests.empty() || !state.empty(); }
};

// Where a flag asks us to listen.
struct Listening {
  std::string host;
  std::uint16_t port = 0;
};
// `text` is ADDRESS or ADDRESS:PORT, with an IPv6 address before a port in brackets; `port` fills
// in. kInvalid names the flag.
base::Result<Listening> listening_at(std::string_view flag, const std::string& text,
                                     std::int64_t port);

void declare(base::Flags& flags, Options& options);
// Why these do not go together; empty when they do.
std::string contradiction_in(const Options& options);

// Fills `options` from the command line; a number: end with that exit code.
std::optional<int> parse_options(int argc, const char* const* argv, Options& options);

}  // namespace controller
