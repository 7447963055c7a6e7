#include "libs/metrics/process.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <mutex>

#include "libs/base/files.h"
#include "libs/base/strings.h"

namespace metrics {
namespace {

struct ProcessFacts {
  double cpu_seconds = 0, resident_bytes = 0, virtual_bytes = 0, start_seconds = 0, threads = 0;
};

// The fields of /proc/PID/stat after the program's name, which may hold spaces and brackets itself;
// fields[0] is field 3 of proc(5).
std::vector<std::string> stat_fields() {
  const auto stat = base::read_file("/proc/self/stat");
  if (!stat) return {};
  const auto end_of_name = stat->rfind(')');
  if (end_of_name == std::string::npos) return {};
  return base::split(base::trim(std::string_view(*stat).substr(end_of_name + 1)), ' ');
}

double boot_seconds() {
  const auto stat = base::read_file("/proc/stat");
  if (!stat) return 0;
  for (const auto& line : base::split(*stat, '\n')) {
    if (line.starts_with("btime ")) {
      return static_cast<double>(base::parse_integer(line.substr(6)).value_or(0));
    }
  }
  return 0;
}

ProcessFacts look() {
  const auto fields = stat_fields();
  const auto field = [&](std::size_t number) {
    return number - 3 < fields.size()
               ? static_cast<double>(base::parse_integer(fields[number - 3]).value_or(0))
               : 0.0;
  };
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return {.cpu_seconds = (field(14) + field(15)) / ticks,
          .resident_bytes = field(24) * static_cast<double>(::sysconf(_SC_PAGESIZE)),
          .virtual_bytes = field(23),
          .start_seconds = boot_seconds() + field(22) / ticks,
          .threads = field(20)};
}

double open_files() {
  std::error_code failed;
  std::filesystem::directory_iterator all("/proc/self/fd", failed);
  double count = 0;
  for (; !failed && all != std::filesystem::directory_iterator(); all.increment(failed)) ++count;
  return count > 0 ? count - 1 : 0;  // One of them is this look's own.
}

double open_files_max() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

}  // namespace

Table process_table() {
  return {
      {Kind::kCounter, "process_cpu_seconds_total", "User and system CPU time spent, in seconds."},
      {Kind::kGauge, "process_resident_memory_bytes", "Resident memory, in bytes."},
      {Kind::kGauge, "process_virtual_memory_bytes", "Virtual memory, in bytes."},
      {Kind::kGauge, "process_open_fds", "Open file descriptors."},
      {Kind::kGauge, "process_max_fds", "The limit on open file descriptors."},
      {Kind::kGauge, "process_threads", "Threads of the process."},
      {Kind::kGauge, "process_start_time_seconds", "Start of the process, in Unix seconds."},
  };
}

void watch_process(Registry& registry) {
  // Expositions may overlap; the CPU counter is moved by the difference under one lock.
  auto mutex = std::make_shared<std::mutex>();
  registry.before_exposition([&registry, mutex] {
    std::lock_guard lock(*mutex);
    const ProcessFacts now = look();
    auto cpu = registry.counter("process_cpu_seconds_total");
    if (const double grown = now.cpu_seconds - cpu.value(); grown > 0) cpu.add(grown);
    registry.gauge("process_resident_memory_bytes").set(now.resident_bytes);
    registry.gauge("process_virtual_memory_bytes").set(now.virtual_bytes);
    registry.gauge("process_open_fds").set(open_files());
    registry.gauge("process_max_fds").set(open_files_max());
    registry.gauge("process_threads").set(now.threads);
    registry.gauge("process_start_time_seconds").set(now.start_seconds);
  });
}

}  // namespace metrics
