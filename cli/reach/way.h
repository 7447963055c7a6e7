#pragma once

#include <functional>
#include <string>

#include "cli/line/options.h"
#include "cli/line/place.h"
#include "libs/base/result.h"
#include "libs/wire/client/connection.h"

// How a command reaches into a sandbox: through agentd, on this machine.
namespace cli {

inline constexpr char kSocket[] = "/run/sandfleet/agentd.sock";

struct Way {
  std::string socket;
  wire::SandboxName sandbox;
  std::string token_file = {};       // Empty: who we are is all that is asked.
  std::string service_account = {};  // Instead: whose token the cluster is asked for.
  bool operator==(const Way&) const = default;
};

// `named`: the sandbox as it was typed, [NAMESPACE/]NAME; empty: it was not. What the command line
// says wins over the environment. kInvalid says what is missing.
base::Result<Way> choose_way(const Options& options, const std::string& named,
                             const Surroundings& around);

// For each link the token that the file has by then.
std::function<base::Result<wire::Credential>()> credential_from(const std::string& token_file);

// What agentd said, as every verb tells failures.
base::Error to_error(const wire::Failure& failure);

}  // namespace cli
