#include <unistd.h>

#include <functional>
#include <iostream>
#include <sstream>
#include <thread>

#include "cli/complete.h"
#include "cli/inside/inside.h"
#include "cli/line/place.h"
#include "cli/reach/attach_token.h"
#include "cli/reach/held_signals.h"
#include "cli/resources/cluster_backend.h"
#include "cli/resources/folder_backend.h"
#include "cli/resources/verbs.h"
#include "libs/base/descriptors.h"
#include "libs/net/curl_transport.h"

// sandfleet VERB: read the flags, choose where the resources are, run the verb. By another name it
// is what kubectl asks for completions.

namespace {

using Use = std::function<int(cli::Backend&)>;

constexpr base::Milliseconds kPatience{30'000};

int use_folder(const std::filesystem::path& state, const Use& use) {
  cli::FolderBackend backend(state, [](base::Milliseconds time) {
    std::this_thread::sleep_for(time);
    return true;
  });
  return use(backend);
}

// A client of the cluster, with the connection that it speaks over.
struct Cluster {
  Cluster(const kube::Config& config, const base::Clock& clock, base::Milliseconds patience)
      : connection(
            config, clock,
            {.transport =
                 [](const net::ConnectionOptions& wanted) { return net::curl_transport(wanted); }}),
        client(connection, {.field_manager = cli::kFieldManager,
                            .timeout = patience,
                            .list_timeout = 2 * patience}) {}

  kube::Connection connection;
  kube::Client client;
};

int use_cluster(const kube::Config& config, const cli::Terminal& terminal,
                base::Milliseconds patience, const Use& use) {
  Cluster cluster(config, terminal.clock, patience);
  cli::ClusterBackend backend(cluster.client, terminal.clock,
                              [&](const std::string& news) { terminal.err << news << '\n'; });
  return use(backend);
}

// `use` has the backend of where the options say.
int with_backend(const cli::Options& options, const cli::Terminal& terminal,
                 base::Milliseconds patience, const Use& use) {
  const auto place = cli::choose_place(options, cli::surroundings_of_process());
  if (!place) {
    terminal.err << "sandfleet: " << place.error().message << "\n";
    return place.error().exit;
  }
  return place->cluster ? use_cluster(*place->cluster, terminal, patience, use)
                        : use_folder(place->state, use);
}

base::Result<std::string> find_token(const cli::Options& options, const wire::SandboxName& sandbox,
                                     const std::string& account) {
  const base::SystemClock clock;
  TRY(const auto place, cli::choose_place(options, cli::surroundings_of_process()));
  if (!place.cluster)
    return base::error(base::ErrorCode::kInvalid,
                       "--service-account is for a cluster; leave it out with a state folder");
  Cluster cluster(*place.cluster, clock, kPatience);
  return cli::request_attach_token(cluster.client, sandbox.space, account);
}

int run_inside(const cli::Verb& verb, const cli::Options& options, const cli::Terminal& terminal) {
  const auto settings =
      cli::connection_for(verb, options, cli::surroundings_of_process(),
                          [&](const wire::SandboxName& sandbox, const std::string& account) {
                            return find_token(options, sandbox, account);
                          });
  if (!settings) return cli::refuse(verb, options, settings.error(), terminal.err);
  const base::Fd signals = verb.lists || verb.kills ? base::Fd() : cli::hold_signals();
  const cli::Ends ends{.signals = signals.get(), .watched = ::isatty(STDERR_FILENO) == 1};
  wire::Connection connection(*settings, terminal.clock);
  return cli::run_inside(verb, options, connection, ends, terminal);
}

int run_verb(const cli::Verb& verb, const cli::Options& options) {
  const base::SystemClock clock;
  const cli::Terminal terminal{std::cout, std::cerr, std::cin, clock};
  if (verb.attaches) return run_inside(verb, options, terminal);
  return with_backend(options, terminal, kPatience, [&](cli::Backend& backend) {
    return cli::run(verb, options, backend, terminal);
  });
}

// For who presses a key and waits: no name is better than a late one.
std::vector<std::string> find_names(const cli::Options& options, cli::Subject subject) {
  constexpr base::Milliseconds kPatience{3'000};
  const base::SystemClock clock;
  std::ostringstream untold;
  std::vector<std::string> names;
  with_backend(options, {untold, untold, std::cin, clock}, kPatience, [&](cli::Backend& backend) {
    names = cli::names_in(backend, options, subject);
    return cli::kDone;
  });
  return names;
}

// What a full disk or a closed pipe took was not told, whatever the verb says.
int unless_untold(int code) {
  std::cout.flush();
  if (std::cout || code != 0) return code;
  std::cerr << "sandfleet: cannot write to standard output\n";
  return cli::kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  base::hold_standard_descriptors();
  cli::Options options;
  const std::string called = argc > 0 ? argv[0] : "";
  if (cli::completes(called)) {
    std::cout << to_text(cli::complete({argv + 1, argv + argc}, find_names));
    return unless_untold(cli::kDone);
  }
  options.program = cli::program_named(called);
  options.path = cli::path_called(called);
  base::Flags flags(options.program, cli::kAbout);
  cli::declare(flags, options, [&](const cli::Verb& verb) { return run_verb(verb, options); });
  const auto [line, command] = cli::split_line({argv + 1, argv + argc});
  options.command = command;
  if (argc > 1 && !cli::could_begin(argv[1])) {
    std::cerr << "sandfleet: no command \"" << argv[1] << "\"\nRun '" << options.program
              << " --help' for all.\n";
    return cli::kUsage;
  }
  std::vector<const char*> words = {called.c_str()};
  for (const std::string& word : line) words.push_back(word.c_str());
  if (const auto code = flags.parse(static_cast<int>(words.size()), words.data()))
    return unless_untold(*code);
  return cli::kUsage;
}
