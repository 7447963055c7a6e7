#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/result.h"

namespace controller {

// An executor that is sent where the template does not have it.
struct ExecutorFile {
  std::string content;
  std::string sha256_hex;
  std::string machine = {};  // That it runs on, as uname(1) names it; empty: not known.
};

// All that are at hand, one for each processor. Without any, that of the template is taken as it
// is.
using ExecutorFiles = std::vector<ExecutorFile>;

ExecutorFile as_executor(std::string content);

// By the header of an ELF file (elf(5), e_machine), for processors that an executor is built for.
std::string machine_of(std::string_view elf);

// Those at `paths`; without a path, those in `folder`: sandfleet-executor, and for other processors
// than its own sandfleet-executor-MACHINE.
base::Result<ExecutorFiles> read_executors(const std::vector<std::string>& paths,
                                           const std::filesystem::path& folder);

// Of at least one, the one for a sandbox's processor; where its image cannot tell (empty), the
// first. The error says what the sandbox has and what is at hand.
base::Result<const ExecutorFile*> choose(const ExecutorFiles& executors, std::string_view machine);

}  // namespace controller
