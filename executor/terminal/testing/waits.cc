// Sleeps in one of the ways that a program waits for its terminal, or for something else: "waits
// WAY", which says "ready" right before. Links nothing of ours, and is a program of its own, so
// that it is seen as any other.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <thread>

namespace {

char g_bytes[16];

int ready() { return static_cast<int>(::write(1, "ready", 5)); }

int epoll_over(int watched, std::uint32_t events) {
  const int instance = ::epoll_create1(0);
  epoll_event wanted{};
  wanted.events = events;
  ::epoll_ctl(instance, EPOLL_CTL_ADD, watched, &wanted);
  return instance;
}

int wait_on(int instance) {
  epoll_event got[1];
  return ready() + ::epoll_wait(instance, got, 1, -1);
}

int by_vector(bool at_offset) {
  iovec place{g_bytes, sizeof g_bytes};
  ready();
  return static_cast<int>(at_offset ? ::preadv2(0, &place, 1, -1, 0) : ::readv(0, &place, 1));
}

int by_poll(int fd, short events, int timeout_ms) {
  // What is waited for stands among others.
  pollfd files[] = {{-1, POLLIN, 0}, {1, POLLERR, 0}, {fd, events, 0}};
  ready();
  return ::poll(files, 3, timeout_ms);
}

int by_ppoll() {
  pollfd file{0, POLLRDNORM, 0};
  ready();
  return ::ppoll(&file, 1, nullptr, nullptr);
}

int by_select(int fd, bool to_read, bool exactly) {
  fd_set files;
  FD_ZERO(&files);
  FD_SET(fd, &files);
  fd_set* const reads = to_read ? &files : nullptr;
  fd_set* const fails = to_read ? nullptr : &files;
  ready();
  return exactly ? ::pselect(fd + 1, reads, nullptr, fails, nullptr, nullptr)
                 : ::select(fd + 1, reads, nullptr, fails, nullptr);
}

int by_splice() {
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  ready();
  return static_cast<int>(::splice(0, nullptr, ends[1], nullptr, 1, 0));
}

int by_pipe() {
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  ready();
  return static_cast<int>(::read(ends[0], g_bytes, 1));
}

int by_copy() {
  const int copy = ::dup(0);
  const int instance = epoll_over(copy, EPOLLIN);
  ::close(copy);
  return wait_on(instance);
}

int by_moved_pipe() {
  int ends[2];
  if (::pipe(ends) != 0) return 1;
  const int copy = ::dup(ends[0]);
  const int instance = epoll_over(copy, EPOLLIN);
  ::close(copy);
  return wait_on(instance);
}

int by_disarmed() {
  const int instance = epoll_over(0, EPOLLIN | EPOLLONESHOT);
  epoll_event got[1];
  ready();
  ::epoll_wait(instance, got, 1, -1);
  static_cast<void>(!::read(0, g_bytes, sizeof g_bytes));
  return wait_on(instance);
}

int by_edge() {
  const int instance = epoll_over(0, EPOLLIN | EPOLLET);
  epoll_event got[1];
  ready();
  ::epoll_wait(instance, got, 1, -1);
  return wait_on(instance);
}

int by_thread() {
  std::thread reader([] { static_cast<void>(::read(0, g_bytes, 1)); });
  ready();
  reader.join();
  return 0;
}

int by_child() {
  if (::fork() == 0) {
    ready();
    ::_exit(static_cast<int>(::read(0, g_bytes, 1)));
  }
  return ::wait(nullptr);
}

int with_ring() {
  char parameters[256] = {};  // struct io_uring_params has 120 bytes.
  if (::syscall(SYS_io_uring_setup, 1, parameters) < 0)
    return static_cast<int>(::write(1, "none", 4));
  ready();
  return ::pause();
}

int asleep() {
  ready();
  const timespec long_time{100'000, 0};
  return ::nanosleep(&long_time, nullptr);
}

int wait_by(const char* way) {
  const auto is = [way](const char* name) { return std::strcmp(way, name) == 0; };
  if (is("read")) return ready() + static_cast<int>(::read(0, g_bytes, 1));
  if (is("readv")) return by_vector(false);
  if (is("preadv2")) return by_vector(true);
  if (is("splice")) return by_splice();
  if (is("poll")) return by_poll(0, POLLIN, -1);
  if (is("poll_for_a_time")) return by_poll(0, POLLIN, 100'000'000);
  if (is("ppoll")) return by_ppoll();
  if (is("select")) return by_select(0, true, false);
  if (is("select_high")) return by_select(::fcntl(0, F_DUPFD, 700), true, false);
  if (is("pselect")) return by_select(0, true, true);
  if (is("epoll")) return wait_on(epoll_over(0, EPOLLIN));
  if (is("epoll_in_epoll")) return wait_on(epoll_over(epoll_over(0, EPOLLIN), EPOLLIN));
  if (is("poll_epoll")) return by_poll(epoll_over(0, EPOLLIN), POLLIN, -1);
  if (is("epoll_of_tty")) return wait_on(epoll_over(::open("/dev/tty", O_RDWR), EPOLLIN));
  if (is("epoll_of_copy")) return by_copy();
  if (is("read_of_tty"))
    return ready() + static_cast<int>(::read(::open("/dev/tty", O_RDWR), g_bytes, 1));
  if (is("read_reopened"))
    return ready() + static_cast<int>(::read(::open("/proc/self/fd/0", O_RDONLY), g_bytes, 1));
  if (is("thread")) return by_thread();
  if (is("child")) return by_child();
  if (is("sleep")) return asleep();
  if (is("pipe")) return by_pipe();
  if (is("poll_for_the_end")) return by_poll(0, 0, -1);
  if (is("poll_pause")) return ready() + ::poll(nullptr, 0, -1);
  if (is("select_for_errors")) return by_select(0, false, false);
  if (is("epoll_for_the_end")) return wait_on(epoll_over(0, EPOLLHUP));
  if (is("epoll_of_nothing")) return wait_on(::epoll_create1(0));
  if (is("epoll_of_moved_pipe")) return by_moved_pipe();
  if (is("disarmed")) return by_disarmed();
  if (is("edge")) return by_edge();
  if (is("ring")) return with_ring();
  return 2;
}

}  // namespace

int main(int argc, char** argv) { return argc == 2 ? wait_by(argv[1]) : 2; }
