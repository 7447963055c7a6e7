#include "local_e2b/control/shared_executor.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "libs/base/files.h"
#include "libs/base/json.h"
#include "libs/base/reading.h"
#include "libs/base/strings.h"
#include "local_e2b/box/spawn.h"

namespace local_e2b {
namespace {

constexpr base::Milliseconds kStart{10'000};
constexpr std::size_t kLineBytesMax = 4096;

struct Pipe {
  base::Fd in, out;
};
base::Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::errno_error("make", "a pipe", errno);
  return Pipe{base::Fd(ends[0]), base::Fd(ends[1])};
}

}  // namespace

base::Result<std::unique_ptr<SharedExecutor>> SharedExecutor::start(
    const std::filesystem::path& executor) {
  TRY(Pipe input, make_pipe());
  TRY(Pipe output, make_pipe());
  TRY(const pid_t pid, spawn(executor, "stand-in", input.in.get(), output.out.get()));
  // From here on its end is this object's.
  std::unique_ptr<SharedExecutor> started(new SharedExecutor(pid, std::move(input.out)));
  output.out.reset();
  CHECK_OK(started->understand(base::read_line(output.in.get(), kLineBytesMax, kStart)));
  return started;
}

base::Result<base::Done> SharedExecutor::understand(const std::string& told) {
  const auto json = base::parse_json(told);
  const base::Json* ports = json ? base::object_at(*json, "ports") : nullptr;
  if (ports)
    for (const auto& [inside, port] : ports->items()) {
      const auto number = base::parse_integer(inside);
      if (number && port.is_number_integer()) ports_[static_cast<int>(*number)] = port.get<int>();
    }
  if (ports_.empty())
    return base::error(
        base::ErrorCode::kUnavailable,
        "the executor that all sandboxes share did not say where it answers: ", told);
  envd_version_ = base::text_at(*json, "envdVersion").value_or("");
  return base::Done{};
}

SharedExecutor::~SharedExecutor() {
  if (has_ended()) return;
  ::kill(pid_, SIGKILL);  // It has nothing to tidy up.
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool SharedExecutor::has_ended() {
  if (!ended_) ended_ = ::waitpid(pid_, nullptr, WNOHANG) != 0;
  return ended_;
}

}  // namespace local_e2b
