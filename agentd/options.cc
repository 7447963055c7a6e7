#include "agentd/options.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "libs/base/certificate.h"
#include "libs/base/strings.h"

namespace agentd {
namespace {

base::Error wrong(std::string_view flag, std::string_view text, std::string_view why) {
  return base::error(base::ErrorCode::kInvalid, flag, " ", text, ": ", why);
}

base::Result<mode_t> mode_of(const std::string& text) {
  unsigned mode = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (failed != std::errc() || end != text.data() + text.size() || text.empty() || mode > 0777)
    return wrong("--socket-mode", text, "give an octal mode such as 0660");
  return static_cast<mode_t>(mode);
}

base::Result<gid_t> group_of(std::string_view flag, const std::string& text) {
  if (const auto known = base::find_group(text)) return *known;
  return wrong(flag, text, "there is no such group");
}

base::Result<uid_t> user_of(const std::string& text) {
  const auto number = base::parse_integer(text);
  if (!number || *number < 0 || *number > UINT32_MAX - 1)
    return wrong("--allow-uid", text, "give a user's number");
  return static_cast<uid_t>(*number);
}

// A stranger on the network is told from a harness by a certificate or by a token. In a cluster the
// token in hello is the harness's own, and for the attach service to judge.
base::Result<std::optional<TcpDoorSettings>> tcp_of(const Options& options) {
  const bool any = !options.tls_certificate.empty() || !options.tls_key.empty() ||
                   !options.client_ca.empty() || !options.token_file.empty() ||
                   options.listen_port != 0;
  if (options.listen_address.empty()) {
    if (any)
      return base::error(base::ErrorCode::kInvalid,
                         "flags of the TCP listener go with --listen-address");
    return std::optional<TcpDoorSettings>();
  }
  const auto refused = [&](std::string_view why) {
    return wrong("--listen-address", options.listen_address, why);
  };
  if (!base::is_ip_address(options.listen_address))
    return refused("give an IPv4 or IPv6 address, such as 0.0.0.0");
  if (options.tls_certificate.empty() || options.tls_key.empty())
    return refused("it goes with --tls-certificate and --tls-key");
  if (options.client_ca.empty() && options.token_file.empty())
    return refused("it goes with --client-ca or --token-file, by which harnesses are known");
  if (!options.token_file.empty() && !options.way.has_folder())
    return refused(
        "in a cluster harnesses show tokens of their own, and --token-file is of no use");
  return std::optional<TcpDoorSettings>({.address = options.listen_address,
                                         .port = static_cast<std::uint16_t>(options.listen_port),
                                         .certificate = options.tls_certificate,
                                         .key = options.tls_key,
                                         .client_authorities = options.client_ca,
                                         .token = options.token_file});
}

base::Result<wire::SandboxName> sandbox_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  wire::SandboxName name{text.substr(0, slash),
                         slash == std::string::npos ? std::string() : text.substr(slash + 1)};
  if (name.space.empty() || name.name.empty() || name.name.find('/') != std::string::npos)
    return wrong("--sandbox", text, "give NAMESPACE/NAME");
  return name;
}

}  // namespace

base::Result<Settings> settings_of(const Options& options) {
  Settings settings{.door = {.path = options.socket}};
  TRY(settings.door.rights.mode, mode_of(options.socket_mode));
  if (!options.socket_group.empty()) {
    TRY(settings.door.rights.group, group_of("--socket-group", options.socket_group));
  }
  for (const std::string& one : options.allow_uids) {
    TRY(const uid_t uid, user_of(one));
    settings.door.allowed.uids.push_back(uid);
  }
  for (const std::string& one : options.allow_gids) {
    TRY(const gid_t gid, group_of("--allow-gid", one));
    settings.door.allowed.gids.push_back(gid);
  }
  TRY(settings.tcp, tcp_of(options));
  if (!options.sandbox.empty()) {
    TRY(settings.usual, sandbox_of(options.sandbox));
  }
  return settings;
}

std::string usual_socket(bool is_root, const std::string& runtime_folder) {
  const bool own = !is_root && !runtime_folder.empty();
  return (own ? runtime_folder : std::string("/run")) + "/sandfleet/agentd.sock";
}

void declare(base::Flags& flags, Options& options) {
  flags.text("--socket", options.socket,
             "Unix socket where harnesses connect; else /run/sandfleet/agentd.sock, or for who is "
             "not root $XDG_RUNTIME_DIR/sandfleet/agentd.sock. Its folder is made");
  flags.text("--socket-mode", options.socket_mode,
             "its mode: who may write to it may connect to it");
  flags.text("--socket-group", options.socket_group, "its group, a name or a number");
  flags.texts("--allow-uid", options.allow_uids,
              "user, by number, who may attach; may be given several times. Without this and "
              "--allow-gid: whoever can connect");
  flags.texts("--allow-gid", options.allow_gids,
              "group whose members may attach, a name or a number; may be given several times");
  flags.text("--listen-address", options.listen_address,
             "IP address where harnesses of other nodes connect, by TLS; else there is the socket "
             "alone");
  flags.number("--listen-port", options.listen_port, "its port; 0: any free one",
               {.at_least = 0, .at_most = 65'535});
  flags.text("--tls-certificate", options.tls_certificate,
             "file with the certificate that is shown there, and its chain; as the next three it "
             "is read anew when it changes");
  flags.text("--tls-key", options.tls_key, "file with that certificate's key");
  flags.text("--client-ca", options.client_ca,
             "file of the authorities that vouch for harnesses' certificates there");
  flags.text("--token-file", options.token_file,
             "folder: file with the token that the hello of a harness must show there");
  declare(flags, options.way);
  flags.text("--executor-ca", options.executor_ca,
             "file of the authorities to believe where executors are reached by https; else the "
             "system's");
  flags.text("--sandbox", options.sandbox,
             "NAMESPACE/NAME of the Sandbox that a harness means that names none");
  flags.number("--links-max", options.links_max, "harnesses at once; more are told to come later",
               {.at_least = 1, .at_most = 65'536});
  flags.number("--links-each-max", options.links_each_max, "of those, to one Sandbox",
               {.at_least = 1, .at_most = 65'536});
  flags.number("--check-seconds", options.check_seconds,
               "how often it is asked whether a harness with an open link may still attach",
               {.at_least = 1, .at_most = 600});
  flags.text("--metrics-address", options.metrics_address,
             "IP address where /metrics, /healthz and /readyz are served");
  flags.number("--metrics-port", options.metrics_port, "their port; 0: any free one",
               {.at_least = 0, .at_most = 65'535});
  flags.text("--ready-file", options.ready_file,
             "written once agentd works, with its addresses as JSON");
  flags.number("--drain-seconds", options.drain_seconds,
               "how long harnesses have to hang up when agentd is asked to end",
               {.at_least = 0, .at_most = 600});
  flags.text("--log-level", options.log_level, "how much is said",
             {.choices = {"debug", "info", "warn", "error"}});
  flags.text("--log-format", options.log_format, "for people or for machines",
             {.choices = {"text", "json"}});
}

std::optional<int> parse_options(int argc, const char* const* argv, Options& options) {
  base::Flags flags("sandfleet-agentd",
                    "Carries what harnesses of this node ask for to their sandboxes.");
  declare(flags, options);
  if (const auto exit_code = flags.parse(argc, argv)) return exit_code;
  if (options.socket.empty()) {
    const char* folder = std::getenv("XDG_RUNTIME_DIR");
    options.socket = usual_socket(::geteuid() == 0, folder ? folder : "");
  }
  if (const std::string wrong = contradiction_in(options.way); !wrong.empty())
    return flags.refuse(wrong);
  if (const auto settings = settings_of(options); !settings)
    return flags.refuse(settings.error().message);
  return std::nullopt;
}

}  // namespace agentd
