#include "executor/activity/process_cpu.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "libs/base/files.h"
#include "libs/base/folder.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnvd = "envd";
constexpr std::int64_t kOfTheKernel = 0x00200000;  // PF_KTHREAD of linux/sched.h.

// The fields behind the name, by their numbers in proc_pid_stat(5), the first of which is 3.
constexpr std::size_t kFirst = 3, kFlags = 9, kOwnUser = 14, kChildrenKernel = 17;

bool serves_others(const ProcessTimes& times, std::string_view own_name) {
  return times.of_the_kernel || times.name == own_name || times.name == kEnvd;
}

}  // namespace

// A name may hold blanks and parentheses; what follows its last one may not.
std::optional<ProcessTimes> parse_process_times(std::string_view stat) {
  const std::size_t begin = stat.find('('), end = stat.rfind(')');
  if (begin == stat.npos || end == stat.npos || end < begin || end + 2 > stat.size())
    return std::nullopt;
  ProcessTimes times{.name = stat.substr(begin + 1, end - begin - 1)};
  const auto fields = base::split(stat.substr(end + 2), ' ');
  if (fields.size() <= kChildrenKernel - kFirst) return std::nullopt;
  const auto flags = base::parse_integer(fields[kFlags - kFirst]);
  if (!flags) return std::nullopt;
  times.of_the_kernel = (*flags & kOfTheKernel) != 0;
  for (std::size_t field = kOwnUser; field <= kChildrenKernel; ++field) {
    const auto ticks = base::parse_integer(fields[field - kFirst]);
    if (!ticks) return std::nullopt;
    (field < kOwnUser + 2 ? times.own : times.children) += *ticks;
  }
  return times;
}

base::Milliseconds cpu_of_processes(const fs::path& proc, std::size_t processes_max) {
  static const long kTicksASecond = std::max(1L, ::sysconf(_SC_CLK_TCK));
  const auto own = base::read_file(proc / "self" / "comm");
  const std::string own_name(own ? base::trim(*own) : "");
  long ticks = 0;
  for (const fs::path& entry : base::entries_of(proc)) {
    if (!base::parse_integer(entry.filename().string())) continue;
    if (processes_max-- == 0) break;
    const auto stat = base::read_file(entry / "stat");
    const auto times = stat ? parse_process_times(*stat) : std::nullopt;
    if (!times) continue;  // It has just ended.
    ticks += times->children + (serves_others(*times, own_name) ? 0 : times->own);
  }
  return base::Milliseconds(ticks * 1'000 / kTicksASecond);
}

}  // namespace executor
