#pragma once

#include <functional>
#include <string>

#include "cli/line/options.h"
#include "cli/line/place.h"
#include "cli/line/terminal.h"
#include "cli/reach/ends.h"
#include "libs/base/result.h"
#include "libs/wire/client/connection.h"

// The verbs that reach into a sandbox.
namespace cli {

// A token to attach with, of an account in the namespace of `sandbox`.
using FindToken = std::function<base::Result<std::string>(const wire::SandboxName& sandbox,
                                                          const std::string& account)>;

// What a connection for such a verb is made of. kInvalid: the command line does not say enough.
base::Result<wire::ConnectionSettings> connection_for(const Verb& verb, const Options& options,
                                                      const Surroundings& around,
                                                      const FindToken& find_token);

// Runs one. The exit code says how it ended: cli::Exit, but for a command's own (exit_code.h).
int run_inside(const Verb& verb, const Options& options, wire::Connection& connection,
               const Ends& ends, const Terminal& terminal);

}  // namespace cli
