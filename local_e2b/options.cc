#include "local_e2b/options.h"

#include "libs/base/flags.h"
#include "libs/base/strings.h"
#include "local_e2b/box/box.h"

namespace local_e2b {
namespace {

constexpr std::int64_t kBookedMax =
    131'072;  // As many as the executor that they share can tell apart.

}  // namespace

std::optional<int> parse_options(int argc, const char* const* argv, Options& options) {
  base::Flags flags(
      "sandfleet-local-e2b",
      "An E2B-compatible provider on this machine, for development: each sandbox is a "
      "process tree in its own Linux namespaces.");
  const base::FlagRule port{.at_least = 0, .at_most = 65535};
  flags.text("--state", options.state, "folder that holds everything this server keeps",
             {.required = true});
  flags.text("--listen", options.listen, "IP address to listen on; loopback unless --listen-any");
  flags.flag("--listen-any", options.listen_any,
             "allow an address that other machines reach; there is no TLS");
  flags.number("--api-port", options.api_port, "port of the control plane; 0 picks one", port);
  flags.number("--data-port", options.data_port, "port of the data plane; 0 picks one", port);
  flags.text("--ready-file", options.ready_file,
             "file to write once requests are served: JSON with api_url, data_url and pid");
  flags.text("--api-key-file", options.api_key_file,
             "API keys, one a line as KEY or TEAM KEY; by default STATE/api-key, made if missing");
  flags.text("--admin-token-file", options.admin_token_file,
             "token that PUT /_local/faults asks for; without it faults come from flags only");
  flags.text("--executor", options.executor,
             "the sandfleet-executor binary; by default the one beside this program");
  flags.texts("--lower", options.lowers, "host folder to show in sandboxes beside /usr and /opt");
  flags.number("--max-sandboxes", options.max_sandboxes, "sandboxes that may run at once",
               {.at_least = 1, .at_most = kBookedMax});
  flags.number("--max-run-seconds", options.max_run_seconds,
               "longest time that a sandbox may run without a pause",
               {.at_least = 1, .at_most = 30 * 86'400});
  flags.number("--build-threads", options.build_threads, "sandboxes that are built at once",
               {.at_least = 1, .at_most = 64});
  flags.number("--seed", options.seed, "seed of the faults");
  flags.texts("--fault", options.faults,
              "OPERATION:KIND[:p=0..1][:count=N][:ms=N], kinds latency, lost-reply, late-effect; "
              "may be repeated");
  flags.flag("--kill-on-exit", options.kill_on_exit, "end every sandbox on SIGTERM or SIGINT");
  flags.flag("--bookkeeping", options.bookkeeping,
             "for measuring: sandboxes are kept in the books only, nothing runs in them, and one "
             "executor answers for them all");
  flags.text("--log-level", options.log_level, "least level that is logged",
             {.choices = {"debug", "info", "warn", "error"}});
  flags.text("--log-format", options.log_format, "how log lines are written",
             {.choices = {"text", "json"}});
  return flags.parse(argc, argv);
}

base::Result<std::vector<FaultRule>> check_options(const Options& options) {
  const bool loopback = base::split(options.listen, '.')[0] == "127" || options.listen == "::1";
  if (!loopback && !options.listen_any)
    return base::error(base::ErrorCode::kInvalid, "--listen ", options.listen,
                       ": other machines could reach it; use 127.0.0.1, or --listen-any if that is "
                       "meant");
  if (!options.bookkeeping && options.max_sandboxes > static_cast<std::int64_t>(kBoxesMax))
    return base::error(base::ErrorCode::kInvalid, "--max-sandboxes ",
                       std::to_string(options.max_sandboxes), ": there is room for ",
                       std::to_string(kBoxesMax), ", except with --bookkeeping");
  std::vector<FaultRule> rules;
  for (const auto& text : options.faults) {
    auto rule = parse_fault(text);
    if (!rule) return base::error(base::ErrorCode::kInvalid, "--fault: ", rule.error().message);
    rules.push_back(*std::move(rule));
  }
  return rules;
}

}  // namespace local_e2b
