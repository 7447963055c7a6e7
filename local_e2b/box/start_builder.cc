#include "local_e2b/box/start_builder.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "local_e2b/box/builder.h"
#include "local_e2b/box/spawn.h"

namespace local_e2b {
namespace {

constexpr std::size_t kReportBytesMax = 64 << 10;

// A file in memory: unlike a pipe, it can be filled before anybody reads.
base::Result<base::Fd> memory_file(const std::string& text) {
  base::Fd file(::memfd_create("blueprint", MFD_CLOEXEC));
  if (!file) return base::errno_error("make", "a file in memory", errno);
  CHECK_OK(base::write_all(file.get(), text));
  return file;
}

// Everything until the other end is closed; nothing when that takes too long.
std::optional<std::string> read_until_closed(int pipe, base::Milliseconds at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  std::string text;
  while (text.size() < kReportBytesMax) {
    const auto left =
        std::chrono::duration_cast<base::Milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd readable{pipe, POLLIN, 0};
    if (left.count() <= 0) return std::nullopt;
    if (::poll(&readable, 1, static_cast<int>(left.count())) <= 0) continue;
    char part[4096];
    const ssize_t got = ::read(pipe, part, sizeof part);
    if (got == 0) return text;
    if (got > 0) text.append(part, static_cast<std::size_t>(got));
  }
  return text;
}

Built failed(const base::Error& error) {
  return {0, StepFailure{"start the builder", error.message}};
}

}  // namespace

Built parse_report(const std::string& report) {
  Built built;
  for (const std::string& line : base::split(report, '\n')) {
    if (line.empty()) continue;
    const auto json = base::parse_json(line);
    if (!json) continue;
    if (const auto pid = base::integer_at(*json, "initPid"); pid && *pid > 0 && *pid <= INT32_MAX)
      built.init_pid = static_cast<pid_t>(*pid);
    const auto step = base::text_at(*json, "step");
    const auto message = base::text_at(*json, "message");
    // The first failure is the cause; a second one says that the other side noticed.
    if (step && message && !built.failure) built.failure = StepFailure{*step, *message};
  }
  if (built.init_pid == 0 && !built.failure)
    built.failure = StepFailure{"start the builder", "it ended without a report"};
  return built;
}

Built run_builder(const std::filesystem::path& builder, const Blueprint& plan,
                  base::Milliseconds at_most) {
  const auto input = memory_file(base::to_text(to_json(plan)));
  if (!input) return failed(input.error());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return failed(base::errno_error("make", "a pipe", errno));
  const base::Fd report(ends[0]);
  base::Fd written(ends[1]);
  const auto pid = spawn(builder, kBuilderFlag, input->get(), written.get());
  if (!pid) return failed(pid.error());
  written.reset();

  const auto text = read_until_closed(report.get(), at_most);
  if (!text) ::kill(*pid, SIGKILL);
  while (::waitpid(*pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (text) return parse_report(*text);
  return {0, StepFailure{"build", "not done within " + std::to_string(at_most.count()) + " ms"}};
}

}  // namespace local_e2b
