#include "executor/envd/metrics.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "libs/base/clock.h"
#include "libs/base/files.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> words;
  for (std::string& word : base::split(line, ' '))
    if (!word.empty()) words.push_back(std::move(word));
  return words;
}

}  // namespace

std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat) {
  const auto fields = words(proc_stat.substr(0, proc_stat.find('\n')));
  if (fields.size() < 6 || fields[0] != "cpu") return std::nullopt;
  CpuTimes times;
  // user nice system idle iowait irq softirq steal; the guest times after them are part of user.
  for (std::size_t i = 1; i < std::min<std::size_t>(fields.size(), 9); ++i) {
    const auto ticks = static_cast<std::uint64_t>(base::parse_integer(fields[i]).value_or(0));
    times.total += ticks;
    if (i != 4 && i != 5) times.busy += ticks;
  }
  return times;
}

double cpu_used_percent(const CpuTimes& before, const CpuTimes& now, unsigned cores) {
  if (now.total <= before.total || now.busy < before.busy) return 0;
  const double share =
      static_cast<double>(now.busy - before.busy) / static_cast<double>(now.total - before.total);
  return std::round(share * 100 * cores * 100) / 100;
}

Memory parse_memory(std::string_view meminfo) {
  Memory memory;
  std::uint64_t available = 0;
  for (const std::string& line : base::split(meminfo, '\n')) {
    const auto fields = words(line);
    if (fields.size() < 2) continue;
    const auto bytes =
        static_cast<std::uint64_t>(base::parse_integer(fields[1]).value_or(0)) * 1024;
    if (fields[0] == "MemTotal:") memory.total = bytes;
    if (fields[0] == "MemAvailable:") available = bytes;
    if (fields[0] == "Cached:") memory.cache = bytes;
  }
  memory.used = memory.total - std::min(memory.total, available);
  return memory;
}

base::Json read_metrics() {
  const auto cores = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  // The share is of the time since whoever asked before; the first one learns the time since boot.
  static CpuTimes last;
  const auto stat = base::read_file("/proc/stat");
  const CpuTimes now = (stat ? parse_cpu_times(*stat) : std::nullopt).value_or(CpuTimes{});
  const double used = cpu_used_percent(last, now, cores);
  last = now;

  const auto meminfo = base::read_file("/proc/meminfo");
  const Memory memory = meminfo ? parse_memory(*meminfo) : Memory{};
  struct statvfs disk{};
  ::statvfs("/", &disk);
  const std::uint64_t disk_total = disk.f_blocks * disk.f_frsize;
  const auto seconds =
      std::chrono::duration_cast<base::Seconds>(base::SystemClock().wall().time_since_epoch());
  return {{"ts", seconds.count()},
          {"cpu_count", cores},
          {"cpu_used_pct", used},
          {"mem_total", memory.total},
          {"mem_used", memory.used},
          {"mem_cache", memory.cache},
          {"mem_total_mib", memory.total >> 20},
          {"mem_used_mib", memory.used >> 20},
          {"disk_used", disk_total - disk.f_bfree * disk.f_frsize},
          {"disk_total", disk_total}};
}

}  // namespace executor
