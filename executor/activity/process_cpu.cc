#include "executor/activity/process_cpu.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "libs/base/files.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnvd = "envd";
constexpr unsigned long kOfTheKernel = 0x00200000;  // PF_KTHREAD of linux/sched.h.

// The fields behind the name, by their numbers in proc_pid_stat(5), the first of which is 3.
constexpr std::size_t kFirst = 3, kFlags = 9, kOwnUser = 14, kChildrenKernel = 17;

template <typename Number>
std::optional<Number> number_in(std::string_view word) {
  Number number{};
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
  if (read.ec != std::errc{} || read.ptr != word.data() + word.size()) return std::nullopt;
  return number;
}

bool serves_others(const ProcessTimes& times, std::string_view own_name) {
  return times.of_the_kernel || times.name == own_name || times.name == kEnvd;
}

bool is_number(const std::string& name) {
  return std::ranges::all_of(name, [](char letter) { return letter >= '0' && letter <= '9'; });
}

}  // namespace

// A name may hold blanks and parentheses; what follows its last one may not.
std::optional<ProcessTimes> parse_process_times(std::string_view stat) {
  const std::size_t begin = stat.find('('), end = stat.rfind(')');
  if (begin == stat.npos || end == stat.npos || end < begin || end + 2 > stat.size())
    return std::nullopt;
  ProcessTimes times{.name = stat.substr(begin + 1, end - begin - 1)};
  std::string_view rest = stat.substr(end + 2);
  std::array<std::string_view, kChildrenKernel + 1> fields = {};
  for (std::size_t field = kFirst; field <= kChildrenKernel; ++field) {
    const std::size_t blank = std::min(rest.find(' '), rest.size());
    fields[field] = rest.substr(0, blank);
    rest.remove_prefix(std::min(blank + 1, rest.size()));
  }
  const auto flags = number_in<unsigned long>(fields[kFlags]);
  if (!flags) return std::nullopt;
  times.of_the_kernel = (*flags & kOfTheKernel) != 0;
  for (std::size_t field = kOwnUser; field <= kChildrenKernel; ++field) {
    const auto ticks = number_in<long>(fields[field]);
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
  std::error_code failed;
  for (fs::directory_iterator entry(proc, failed), end; entry != end; entry.increment(failed)) {
    if (failed) break;
    if (!is_number(entry->path().filename().string())) continue;
    if (processes_max-- == 0) break;
    const auto stat = base::read_file(entry->path() / "stat");
    const auto times = stat ? parse_process_times(*stat) : std::nullopt;
    if (!times) continue;  // It has just ended.
    ticks += times->children + (serves_others(*times, own_name) ? 0 : times->own);
  }
  return base::Milliseconds(ticks * 1'000 / kTicksASecond);
}

}  // namespace executor
