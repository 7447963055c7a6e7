#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "libs/base/files.h"
#include "libs/base/folder.h"
#include "libs/base/kernel_files.h"
#include "libs/base/strings.h"
#include "libs/base/testing/eventually.h"

// Processes of a test, that can be found again whatever they do.
namespace executor::testing {

inline constexpr const char* kMark = "SANDFLEET_TEST_MARK";

// Those that live and have `mark` in their environment.
inline std::vector<pid_t> marked(const std::string& mark) {
  std::vector<pid_t> found;
  const std::string entry = std::string(kMark) + "=" + mark + '\0';
  for (const auto& folder : base::entries_of("/proc")) {
    const auto pid = base::parse_integer(folder.filename().string());
    if (!pid) continue;
    const auto environment = base::read_file(folder / "environ");
    if (environment && environment->find(entry) != std::string::npos &&
        base::runs(static_cast<pid_t>(*pid)))
      found.push_back(static_cast<pid_t>(*pid));
  }
  return found;
}

// Ends those that a test made on purpose and whose mechanism of ending was switched off.
inline bool end_marked(const std::string& mark) {
  return base::eventually([&] {
    const auto left = marked(mark);
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    return left.empty();
  });
}

}  // namespace executor::testing
