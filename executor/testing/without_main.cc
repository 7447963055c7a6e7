#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/filesystem/testing/seam.h"
#include "executor/options.h"
#include "libs/base/descriptors.h"
#include "libs/base/strings.h"

// The program, for tests from outside, with the mechanisms left out that SANDFLEET_WITHOUT names,
// separated by commas: so they show first that a leak is seen. Nothing but tests has it.
namespace {

constexpr std::pair<std::string_view, executor::Mechanism> kMechanisms[] = {
    {"clearing", executor::Mechanism::kClearing},
    {"sweep", executor::Mechanism::kSweep},
    {"noLinks", executor::Mechanism::kNoLinks},
    {"fence", executor::Mechanism::kFence},
};

// Whether files stay open that should be closed: "closing" is left out.
bool keeps_files_open = false;

bool is_file(int fd) {
  struct stat seen{};
  return ::fstat(fd, &seen) == 0 && S_ISREG(seen.st_mode);
}

}  // namespace

// The linker leads each call of close here (--wrap=close).
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" int __real_close(int fd);
extern "C" int __wrap_close(int fd) {
  return keeps_files_open && is_file(fd) ? 0 : __real_close(fd);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)

int main(int argc, char** argv) {
  base::hold_standard_descriptors();
  const char* named = std::getenv("SANDFLEET_WITHOUT");
  std::vector<std::unique_ptr<executor::Without>> without;
  for (const std::string& name : base::split(named ? named : "", ',')) {
    keeps_files_open = keeps_files_open || name == "closing";
    for (const auto& [word, mechanism] : kMechanisms)
      if (word == name) without.push_back(std::make_unique<executor::Without>(mechanism));
  }
  return executor::parse_and_run(argc, argv);
}
