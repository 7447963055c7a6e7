#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "libs/base/json.h"

namespace executor {

struct CpuTimes {
  std::uint64_t busy = 0, total = 0;  // In ticks, over all cores.
};
std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat);
// Of the time between two looks, in percent of one core, so up to 100 times the number of cores.
double cpu_used_percent(const CpuTimes& before, const CpuTimes& now, unsigned cores);

struct Memory {
  std::uint64_t total = 0, used = 0, cache = 0;  // Bytes.
};
Memory parse_memory(std::string_view meminfo);

base::Json read_metrics();  // The reply of GET /metrics; blocks for some microseconds.

}  // namespace executor
