#include "libs/base/standing_listener.h"

#include <utility>

#include "libs/base/files.h"
#include "libs/base/log.h"

namespace base {

std::string StandingListener::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

Result<Done> StandingListener::look(const std::function<void()>& leave, const Serve& serve) {
  if (stands()) return Done{};
  leave();
  listener_.reset();
  auto opened = open(serve);
  const std::string why = opened ? "" : opened.error().message;
  std::unique_lock lock(mutex_);
  const bool known = !opened && why == trouble_;
  trouble_ = why;
  lock.unlock();
  if (opened) {
    log::info("a socket is open", {{"of", settings_.name}, {"socket", settings_.path.string()}});
  } else if (!known) {
    log::warn(
        "a socket is closed",
        {{"of", settings_.name}, {"socket", settings_.path.string()}, {"error", opened.error()}});
  }
  return opened;
}

Result<Done> StandingListener::open(const Serve& serve) {
  if (std::string why = settings_.hindrance(); !why.empty())
    return Error{ErrorCode::kUnavailable, std::move(why)};
  if (settings_.folder_mode && settings_.path.has_parent_path())
    CHECK_OK(make_folders(settings_.path.parent_path(), *settings_.folder_mode));
  TRY(auto listener, UnixListener::at(settings_.path, settings_.rights));
  TRY(Fd shared, listener->share());
  CHECK_OK(serve(std::move(shared)));
  listener_ = std::move(listener);
  return Done{};
}

}  // namespace base
