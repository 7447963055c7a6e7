#include "libs/base/kernel_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "libs/base/files.h"
#include "libs/base/strings.h"

namespace base {

std::optional<ProcessFacts> parse_process(std::string_view stat) {
  constexpr std::size_t kFields = 20;  // From the third of proc(5) on, up to the start.
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 > stat.size()) return std::nullopt;
  const auto pid = parse_integer(stat.substr(0, stat.find(' ')));
  const auto fields = split(stat.substr(name_end + 2), ' ');
  if (!pid || fields.size() < kFields || fields[0].size() != 1) return std::nullopt;
  const auto number = [&](std::size_t index) { return parse_integer(fields[index]).value_or(0); };
  return ProcessFacts{.pid = static_cast<pid_t>(*pid),
                      .parent = static_cast<pid_t>(number(1)),
                      .group = static_cast<pid_t>(number(2)),
                      .session = static_cast<pid_t>(number(3)),
                      .state = fields[0][0],
                      .start = static_cast<std::uint64_t>(number(19))};
}

std::optional<ProcessFacts> look_at_process(pid_t pid) {
  const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  return stat ? parse_process(trim(*stat)) : std::nullopt;
}

bool runs(pid_t pid) {
  const auto found = look_at_process(pid);
  return found && !found->ended();
}

Result<Done> write_setting(const std::filesystem::path& path, std::string_view text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) < 0)
    return errno_error("write", path, errno);
  return Done{};
}

}  // namespace base
