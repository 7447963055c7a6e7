// Stands in for the executor in tests of boxes: as the box's first process it listens on
// 127.0.0.1:49983, runs each line it is sent with /bin/sh and sends back what that prints.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

[[noreturn]] void run(int connection) {
  std::string line;
  char letter;
  while (::read(connection, &letter, 1) == 1 && letter != '\n') line += letter;
  ::dup2(connection, 1);
  ::dup2(connection, 2);
  ::close(connection);
  ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
  ::_exit(127);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || std::string(argv[1]) != "--envd") return 2;
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(49983);
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&here), sizeof here) != 0 ||
      ::listen(listener, 64) != 0) {
    std::perror("listen");
    return 1;
  }
  std::puts("listening");
  std::fflush(stdout);
  for (;;) {
    pollfd waiting{listener, POLLIN, 0};
    ::poll(&waiting, 1, 20);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (!(waiting.revents & POLLIN)) continue;
    const int connection = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    if (::fork() == 0) run(connection);
    ::close(connection);
  }
}
