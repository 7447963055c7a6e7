#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agentd/door/tcp_door.h"
#include "agentd/door/unix_door.h"
#include "agentd/way/options.h"
#include "libs/base/flags.h"
#include "libs/base/result.h"
#include "libs/base/unix_socket.h"
#include "libs/wire/frames/message.h"

namespace agentd {

// What people can set; the defaults are what --help shows.
struct Options {
  std::string socket;  // Empty only until the command line was read.
  std::string socket_mode = "0660";
  std::string socket_group;
  std::vector<std::string> allow_uids, allow_gids;
  std::string listen_address;  // Empty: the Unix socket alone.
  std::int64_t listen_port = 0;
  std::string tls_certificate, tls_key, client_ca, token_file;
  WayOptions way;
  std::string executor_ca;
  std::string sandbox;  // "NAMESPACE/NAME", for a hello that names none.
  std::int64_t links_max = 1'024;
  std::int64_t links_each_max = 64;
  std::int64_t check_seconds = 300;
  std::string metrics_address = "127.0.0.1";
  std::int64_t metrics_port = 0;
  std::string ready_file;
  std::int64_t drain_seconds = 5;
  std::string log_level = "info";
  std::string log_format = "text";
};

// The same, as the program's parts take it.
struct Settings {
  UnixDoorSettings door;
  std::optional<TcpDoorSettings> tcp;
  std::optional<wire::SandboxName> usual;
};
// kInvalid names the flag and what is wrong with it.
base::Result<Settings> settings_of(const Options& options);

// Where harnesses look for agentd when nothing else is said: a user's own, in his folder for what
// runs, and that of the machine.
std::string usual_socket(bool is_root, const std::string& runtime_folder);

void declare(base::Flags& flags, Options& options);
// Fills `options` from the command line; a number: end with that exit code.
std::optional<int> parse_options(int argc, const char* const* argv, Options& options);

}  // namespace agentd
