#include "libs/manifests/watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace manifests {
namespace {

using Steady = std::chrono::steady_clock;

// The most that a change waits for the next one: an editor writes a file in several steps.
constexpr base::Milliseconds kBurst{20};

enum class Change { kNone, kStep, kWhole };

// A file that was moved in, or that its writer has closed under the name by which it is read. A
// hidden one is on its way to its name, but a move may put all files in place at once.
bool is_whole(const inotify_event& event) {
  if ((event.mask & IN_MOVED_TO) != 0) return true;
  const bool hidden = event.len > 0 && event.name[0] == '.';
  return (event.mask & IN_CLOSE_WRITE) != 0 && !hidden;
}

Change take_changes(int fd) {
  alignas(inotify_event) char buffer[4096];
  Change most = Change::kNone;
  ssize_t size = 0;
  while ((size = ::read(fd, buffer, sizeof buffer)) > 0) {
    for (const char* at = buffer; at < buffer + size;) {
      const auto& event = *reinterpret_cast<const inotify_event*>(at);
      most = std::max(most, is_whole(event) ? Change::kWhole : Change::kStep);
      at += sizeof event + event.len;
    }
  }
  return most;
}

void drain_bell(int fd) {
  std::uint64_t rung = 0;
  [[maybe_unused]] const auto took = ::read(fd, &rung, sizeof rung);
}

}  // namespace

Watcher::Watcher(std::vector<std::filesystem::path> folders,
                 std::function<base::Milliseconds()> look)
    : Watcher([folders = std::move(folders)] { return folders; }, std::move(look)) {}

Watcher::Watcher(Folders folders, std::function<base::Milliseconds()> look)
    : folders_(std::move(folders)),
      look_(std::move(look)),
      changes_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void Watcher::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

Watcher::~Watcher() { stop(); }

void Watcher::stop() {
  thread_.request_stop();
  wake();
  thread_ = {};
}

void Watcher::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto wrote = ::write(bell_.get(), &one, sizeof one);
}

void Watcher::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    // Watched before it is read, so that no change falls between; again each time, because a folder
    // may have been put in another's place. Without inotify the time alone decides.
    for (const auto& folder : folders_())
      ::inotify_add_watch(changes_.get(), folder.c_str(),
                          IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                              IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
    const auto began = Steady::now();
    const base::Milliseconds next = look_();
    if (stop.stop_requested()) return;
    // Looks take at most half of the time, so that those of a burst share one.
    std::this_thread::sleep_for(std::min<Steady::duration>(kBurst, Steady::now() - began));
    wait(next);
  }
}

// Until there is something to look at. What may be one step of several waits for the others.
void Watcher::wait(base::Milliseconds at_most) const {
  if (!next_is_step(at_most)) return;
  const auto until = Steady::now() + kBurst;
  for (auto now = Steady::now(); now < until; now = Steady::now())
    if (!next_is_step(std::chrono::ceil<base::Milliseconds>(until - now))) return;
}

// False when nobody need wait any longer: a whole change, the bell, or the end of the time.
bool Watcher::next_is_step(base::Milliseconds at_most) const {
  pollfd events[] = {{changes_.get(), POLLIN, 0}, {bell_.get(), POLLIN, 0}};
  ::poll(events, 2, static_cast<int>(std::max<std::int64_t>(at_most.count(), 1)));
  const bool rung = (events[1].revents & POLLIN) != 0;
  if (rung) drain_bell(bell_.get());
  return take_changes(changes_.get()) == Change::kStep && !rung;
}

}  // namespace manifests
