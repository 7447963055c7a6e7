#include <cstdlib>
#include <iostream>
#include <thread>

#include "cli/folder_backend.h"
#include "cli/verbs.h"

// sandfleet VERB: read the flags, choose where the resources are, run the verb.

namespace {

// --state, else the environment; given on the command line it always wins, wherever it stands.
std::string state_of(const cli::Options& options) {
  const char* from_environment = std::getenv("SANDFLEET_STATE");
  if (!options.state.empty() || from_environment == nullptr) return options.state;
  return from_environment;
}

int run_verb(const cli::Verb& verb, const cli::Options& options) {
  const base::SystemClock clock;
  const cli::Terminal terminal{std::cout, std::cerr, std::cin, clock, [](base::Milliseconds time) {
                                 std::this_thread::sleep_for(time);
                                 return true;
                               }};
  const std::string state = state_of(options);
  if (state.empty()) {
    std::cerr << "sandfleet: no state folder: give --state DIR, or set SANDFLEET_STATE\n";
    return cli::kUsage;
  }
  cli::FolderBackend backend(state);
  return cli::run(verb, options, backend, terminal);
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
  base::Flags flags("sandfleet", cli::kAbout);
  cli::declare(flags, options, [&](const cli::Verb& verb) { return run_verb(verb, options); });
  if (argc > 1 && !cli::could_begin(argv[1])) {
    std::cerr << "sandfleet: no command \"" << argv[1] << "\"\nRun 'sandfleet --help' for all.\n";
    return cli::kUsage;
  }
  if (const auto code = flags.parse(argc, argv)) return unless_untold(*code);
  return cli::kUsage;
}
