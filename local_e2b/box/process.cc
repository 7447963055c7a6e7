#include "local_e2b/box/process.h"

#include "libs/base/files.h"
#include "libs/base/strings.h"

namespace local_e2b {

std::optional<ProcessState> parse_stat(const std::string& text) {
  constexpr std::size_t kState = 0, kStart = 19;  // Fields 3 and 22 of all, counted from the name.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 > text.size()) return std::nullopt;
  const auto fields = base::split(text.substr(name_end + 2), ' ');
  if (fields.size() <= kStart || fields[kState].size() != 1) return std::nullopt;
  const auto start = base::parse_integer(fields[kStart]);
  if (!start || *start < 0) return std::nullopt;
  return ProcessState{fields[kState][0], static_cast<std::uint64_t>(*start)};
}

std::optional<ProcessState> look_at_process(pid_t pid) {
  const auto text = base::read_file("/proc/" + std::to_string(pid) + "/stat");
  return text ? parse_stat(*text) : std::nullopt;
}

bool is_in_cgroup(const std::string& text, const std::string& folder, const std::string& name) {
  const std::string wanted = "/" + folder + "/" + name;
  for (const std::string& line : base::split(text, '\n')) {
    if (!line.starts_with("0::")) continue;
    const std::string path = line.substr(3);
    return path.ends_with(wanted) || path.find(wanted + "/") != std::string::npos;
  }
  return false;
}

}  // namespace local_e2b
