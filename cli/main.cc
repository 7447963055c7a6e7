#include <functional>
#include <iostream>
#include <sstream>
#include <thread>

#include "cli/cluster_backend.h"
#include "cli/complete.h"
#include "cli/folder_backend.h"
#include "cli/place.h"
#include "cli/verbs.h"
#include "libs/net/curl_transport.h"

// sandfleet VERB: read the flags, choose where the resources are, run the verb. By another name it
// is what kubectl asks for completions.

namespace {

using Use = std::function<int(cli::Backend&)>;

int use_folder(const std::filesystem::path& state, const Use& use) {
  cli::FolderBackend backend(state, [](base::Milliseconds time) {
    std::this_thread::sleep_for(time);
    return true;
  });
  return use(backend);
}

int use_cluster(const kube::Config& config, const cli::Terminal& terminal,
                base::Milliseconds patience, const Use& use) {
  kube::Connection connection(config, terminal.clock,
                              {.transport = [](const net::ConnectionOptions& wanted) {
                                return net::curl_transport(wanted);
                              }});
  kube::Client client(
      connection,
      {.field_manager = cli::kFieldManager, .timeout = patience, .list_timeout = 2 * patience});
  cli::ClusterBackend backend(client, terminal.clock,
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

int run_verb(const cli::Verb& verb, const cli::Options& options) {
  constexpr base::Milliseconds kPatience{30'000};
  const base::SystemClock clock;
  const cli::Terminal terminal{std::cout, std::cerr, std::cin, clock};
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
  cli::Options options;
  const std::string called = argc > 0 ? argv[0] : "";
  if (cli::completes(called)) {
    std::cout << to_text(cli::complete({argv + 1, argv + argc}, find_names));
    return unless_untold(cli::kDone);
  }
  options.program = cli::program_named(called);
  base::Flags flags(options.program, cli::kAbout);
  cli::declare(flags, options, [&](const cli::Verb& verb) { return run_verb(verb, options); });
  if (argc > 1 && !cli::could_begin(argv[1])) {
    std::cerr << "sandfleet: no command \"" << argv[1] << "\"\nRun '" << options.program
              << " --help' for all.\n";
    return cli::kUsage;
  }
  if (const auto code = flags.parse(argc, argv)) return unless_untold(*code);
  return cli::kUsage;
}
