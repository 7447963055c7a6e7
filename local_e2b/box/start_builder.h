#pragma once

#include <sys/types.h>

#include <filesystem>

#include "libs/base/clock.h"
#include "libs/base/result.h"
#include "local_e2b/box/blueprint.h"

namespace local_e2b {

// What came of one run of the builder. An init that it started is this process's child, even when
// the build failed.
struct Built {
  pid_t init_pid = 0;  // 0: none was started.
  std::optional<StepFailure> failure;
};
// Runs `builder` on the plan and waits for the end of its report; kills it after `at_most`.
Built run_builder(const std::filesystem::path& builder, const Blueprint& plan,
                  base::Milliseconds at_most);
// Reads the builder's lines.
Built parse_report(const std::string& report);

}  // namespace local_e2b
