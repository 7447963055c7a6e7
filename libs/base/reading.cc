#include "libs/base/reading.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "libs/base/files.h"

namespace base {

Result<std::string> read_to_end(int fd, const std::filesystem::path& path, std::size_t bytes_max) {
  std::string content;
  char buffer[64 << 10];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error("read", path, errno);
    if (got == 0) return content;
    if (content.size() + static_cast<std::size_t>(got) > bytes_max)
      return error(ErrorCode::kInvalid, path.string(), " is larger than the ",
                   std::to_string(bytes_max), " bytes allowed");
    content.append(buffer, static_cast<std::size_t>(got));
  }
}

Result<std::string> read_regular_file(const std::filesystem::path& path, std::size_t bytes_max) {
  // A pipe without a writer opens at once then, and a terminal does not become ours.
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file && errno != ENXIO) return errno_error("read", path, errno);
  struct stat found{};
  if (file && ::fstat(file.get(), &found) != 0) return errno_error("read", path, errno);
  if (!file || !S_ISREG(found.st_mode))
    return error(ErrorCode::kInvalid, path.string(), " is not a regular file");
  return read_to_end(file.get(), path, bytes_max);
}

std::string read_line(int fd, std::size_t bytes_max, Milliseconds within) {
  const SystemClock clock;
  const auto end = clock.now() + within;
  std::string line;
  while (line.size() < bytes_max) {
    pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
    const auto left = end - clock.now();
    if (left.count() <= 0) break;
    if (::poll(&readable, 1, static_cast<int>(left.count())) <= 0) continue;
    char byte = 0;
    const ssize_t got = ::read(fd, &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got != 1 || byte == '\n') break;
    line += byte;
  }
  return line;
}

}  // namespace base
