// sandfleet-local-e2b: requests come in at two ports. The control plane (control/api) changes the
// fleet (control/fleet), which writes down what it does (state/) and has boxes built, frozen and
// destroyed (box/) by background threads; the data plane (router/) carries requests into them. With
// --bookkeeping the boxes are only written down, and one executor answers for all.
#include <signal.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "libs/aio/background.h"
#include "libs/aio/http_server.h"
#include "libs/aio/loop.h"
#include "libs/base/crypto.h"
#include "libs/base/descriptors.h"
#include "libs/base/files.h"
#include "libs/base/log.h"
#include "libs/base/strings.h"
#include "local_e2b/box/box.h"
#include "local_e2b/control/api.h"
#include "local_e2b/control/bookkeeping_host.h"
#include "local_e2b/control/fleet.h"
#include "local_e2b/control/local_box_host.h"
#include "local_e2b/control/shared_executor.h"
#include "local_e2b/options.h"
#include "local_e2b/router/router.h"
#include "local_e2b/state/key_records.h"

namespace local_e2b {
namespace {

namespace fs = std::filesystem;

BoxSettings box_settings(const Options& options) {
  std::error_code failed;
  const fs::path state = fs::absolute(options.state);
  const fs::path beside = fs::read_symlink("/proc/self/exe", failed).parent_path();
  BoxSettings settings;
  settings.state = state;
  settings.executor =
      options.executor.empty() ? beside / "sandfleet-executor" : fs::absolute(options.executor);
  settings.extra_lowers.assign(options.lowers.begin(), options.lowers.end());
  // One state folder, one cgroup: servers beside each other never see each other's boxes.
  settings.cgroup_name = "sandfleet-" + base::to_hex(base::sha256(state.string())).substr(0, 12);
  return settings;
}

base::Result<std::string> read_admin_token(const Options& options) {
  if (options.admin_token_file.empty()) return std::string();
  TRY(const std::string text, base::read_file(options.admin_token_file, 4096));
  const std::string token(base::trim(text));
  if (token.empty())
    return base::error(base::ErrorCode::kInvalid, options.admin_token_file, " holds no token");
  return token;
}

base::Result<base::Done> check_executor(const BoxSettings& boxes) {
  if (::access(boxes.executor.c_str(), X_OK) == 0) return base::Done{};
  return base::error(base::ErrorCode::kInvalid, "there is no executor at ", boxes.executor.string(),
                     "; name it with --executor");
}

void complain_of(const Capabilities& machine) {
  for (const auto& lack : machine.lacks)
    base::log::warn("this machine lacks something that sandboxes need", {{"what", lack}});
  if (!machine.no_pause.empty())
    base::log::warn("sandboxes cannot be paused here", {{"why", machine.no_pause}});
}

// What keeps books only needs nothing of the machine, and would take real boxes for its own.
base::Result<std::unique_ptr<SharedExecutor>> start_bookkeeping(const BoxSettings& boxes) {
  std::error_code failed;
  const fs::path folder = boxes.state / "boxes";
  if (fs::exists(folder, failed) && !fs::is_empty(folder, failed))
    return base::error(base::ErrorCode::kConflict, "there are sandboxes with processes in ",
                       folder.string(), "; give --bookkeeping a state folder of its own");
  base::log::warn("keeping books only: nothing runs in sandboxes, one executor answers for all");
  return SharedExecutor::start(boxes.executor);
}

BookkeepingHost::Inside inside_of(SharedExecutor& executor) {
  return {.pid = executor.pid(),
          .envd_version = executor.envd_version(),
          .ports = executor.ports(),
          .has_ended = [&executor] { return executor.has_ended(); }};
}

std::vector<std::pair<std::string, std::string>> impossible_on(const Capabilities& machine) {
  std::vector<std::pair<std::string, std::string>> cannot;
  for (const auto& lack : machine.lacks) cannot.emplace_back("create", lack);
  if (!machine.no_pause.empty()) cannot.emplace_back("pause", machine.no_pause);
  return cannot;
}

base::Json ready_note(const Options& options, int api_port, int data_port, const fs::path& keys) {
  const std::string host =
      options.listen.find(':') == std::string::npos ? options.listen : "[" + options.listen + "]";
  const std::string base_url = "http://" + host + ":";
  return {{"api_url", base_url + std::to_string(api_port)},
          {"data_url", base_url + std::to_string(data_port)},
          {"api_port", api_port},
          {"data_port", data_port},
          {"api_key_file", keys.string()},
          {"pid", ::getpid()}};
}

struct Servers {
  aio::HttpServer& api;
  aio::HttpServer& data;
};

base::Result<base::Json> listen(Servers servers, const Options& options, const fs::path& keys) {
  TRY(const int api_port, servers.api.listen(options.listen, static_cast<int>(options.api_port)));
  TRY(const int data_port,
      servers.data.listen(options.listen, static_cast<int>(options.data_port)));
  const base::Json note = ready_note(options, api_port, data_port, keys);
  if (!options.ready_file.empty())
    CHECK_OK(base::write_file_atomically(options.ready_file, base::to_text(note, 1), 0644));
  return note;
}

void announce(const base::Json& note, const Options& options) {
  base::log::info("serving; this provider is for development",
                  {{"api", base::text_at(note, "api_url").value_or("")},
                   {"data", base::text_at(note, "data_url").value_or("")},
                   {"keys", base::text_at(note, "api_key_file").value_or("")}});
  if (options.listen_any)
    base::log::warn("other machines may reach this provider, without TLS; it is for development",
                    {{"listen", options.listen}});
}

aio::Task<int> serve(aio::Executor executor, Fleet& fleet, Api& api, Servers servers,
                     const Options& options, fs::path keys) {
  // Listened for from the start: a SIGTERM right after the ready file is one of those we heed.
  aio::TaskGroup told(executor);
  std::optional<int> signal;
  told.spawn(aio::keep_result(aio::wait_for_signal({SIGTERM, SIGINT}), signal));
  co_await fleet.adopt();
  api.take_over_keys();
  const auto note = listen(servers, options, keys);
  if (!note) {
    base::log::error("cannot serve", {{"error", note.error()}});
    told.cancel();
    co_await told.wait();
    co_return 1;
  }
  announce(*note, options);
  aio::TaskGroup tasks(executor);
  tasks.spawn(fleet.keep_leases());
  tasks.spawn(fleet.tend_boxes());
  co_await told.wait();
  base::log::info("stopping", {{"signal", *signal}});
  servers.api.stop();
  servers.data.stop();
  tasks.cancel();
  co_await tasks.wait();
  if (options.kill_on_exit) co_await fleet.kill_all();
  co_return 0;
}

base::Result<int> run(const Options& options) {
  TRY(auto fault_rules, check_options(options));
  TRY(const Records records, Records::open(options.state));
  TRY(const KeyRecords key_records, KeyRecords::open(options.state));
  const fs::path keys = options.api_key_file.empty() ? fs::absolute(options.state) / "api-key"
                                                     : fs::path(options.api_key_file);
  TRY(const Teams teams,
      options.api_key_file.empty() ? Teams::read_or_make(keys) : Teams::read(keys));
  TRY(std::string admin_token, read_admin_token(options));
  const Capabilities machine = options.bookkeeping ? Capabilities{} : probe_capabilities();
  const base::DescriptorLimit descriptors = base::raise_descriptor_limit();
  BoxSettings settings = box_settings(options);
  settings.descriptors = descriptors.before;
  CHECK_OK(check_executor(settings));
  complain_of(machine);
  std::unique_ptr<SharedExecutor> shared;
  if (options.bookkeeping) {
    TRY(shared, start_bookkeeping(settings));
  }

  const base::SystemClock clock;
  aio::Loop loop;
  aio::Background background(static_cast<int>(options.build_threads));
  Boxes boxes(settings, machine);
  std::unique_ptr<BoxHost> host;
  if (shared)
    host = std::make_unique<BookkeepingHost>(inside_of(*shared));
  else
    host = std::make_unique<LocalBoxHost>(boxes, background, clock);
  Faults faults(static_cast<std::uint64_t>(options.seed));
  CHECK_OK(faults.set(std::move(fault_rules)));
  Connections connections(kConnectionsPerSandboxMax);
  const FleetLimits limits{static_cast<std::size_t>(options.max_sandboxes),
                           options.max_run_seconds};
  Fleet fleet(loop.executor(), *host, records, connections, clock, limits);
  RequestLogs requests;
  Api api({.run_seconds_max = options.max_run_seconds,
           .admin_token = std::move(admin_token),
           .cannot = impossible_on(machine)},
          fleet, key_records, teams, faults, requests, clock);
  Router router(fleet, *host, connections, faults, requests.data, clock);
  const aio::HttpLimits http = aio::limits_within(descriptors.now);
  aio::HttpServer api_server(
      loop.executor(), [&api](auto exchange) { return api.handle(exchange); }, http);
  aio::HttpServer data_server(
      loop.executor(), [&router](auto exchange) { return router.handle(exchange); }, http);
  return loop.run(serve(loop.executor(), fleet, api, {api_server, data_server}, options, keys));
}

}  // namespace
}  // namespace local_e2b

int main(int argc, char** argv) {
  base::hold_standard_descriptors();
  if (const auto exit_code = local_e2b::run_box_builder(argc, argv)) return *exit_code;
  local_e2b::Options options;
  if (const auto exit_code = local_e2b::parse_options(argc, argv, options)) return *exit_code;
  base::log::configure(*base::log::parse_level(options.log_level),
                       *base::log::parse_format(options.log_format));
  const auto exit_code = local_e2b::run(options);
  if (exit_code) return *exit_code;
  std::cerr << "sandfleet-local-e2b: " << exit_code.error().message << "\n";
  return 2;
}
