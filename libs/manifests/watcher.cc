#include "libs/manifests/watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace manifests {
namespace {

// A burst of changes is one look: an editor writes a file in several steps.
constexpr base::Milliseconds kBurst{20};

void drain(int fd) {
  char buffer[4096];
  while (::read(fd, buffer, sizeof buffer) > 0) continue;
}

}  // namespace

Watcher::Watcher(std::vector<std::filesystem::path> folders,
                 std::function<base::Milliseconds()> look)
    : folders_(std::move(folders)),
      look_(std::move(look)),
      changes_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void Watcher::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Watcher::~Watcher() {
  thread_.request_stop();
  wake();
}

void Watcher::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto wrote = ::write(bell_.get(), &one, sizeof one);
}

void Watcher::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    // Watched before it is read, so that no change falls between; again each time, because a folder
    // may have been put in another's place. Without inotify the time alone decides.
    for (const auto& folder : folders_)
      ::inotify_add_watch(changes_.get(), folder.c_str(),
                          IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                              IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
    const base::Milliseconds next = look_();
    if (stop.stop_requested()) return;
    if (wait(next) && !stop.stop_requested()) {
      std::this_thread::sleep_for(kBurst);
      drain(changes_.get());
    }
  }
}

// True when a folder changed.
bool Watcher::wait(base::Milliseconds at_most) const {
  pollfd events[] = {{changes_.get(), POLLIN, 0}, {bell_.get(), POLLIN, 0}};
  ::poll(events, 2, static_cast<int>(std::max<std::int64_t>(at_most.count(), 1)));
  drain(bell_.get());
  const bool changed = (events[0].revents & POLLIN) != 0;
  drain(changes_.get());
  return changed;
}

}  // namespace manifests
