#include "local_e2b/box/handed.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "libs/base/files.h"
#include "local_e2b/box/mounts.h"

namespace local_e2b {

base::Result<std::vector<base::Fd>> open_mounts(const Blueprint& plan, int user_namespace) {
  std::vector<base::Fd> mounts;
  const auto add = [&](const std::filesystem::path& path, int mapped_by,
                       bool read_only) -> base::Result<base::Done> {
    TRY(base::Fd mount, clone_mount(path, mapped_by, read_only));
    mounts.push_back(std::move(mount));
    return base::Done{};
  };
  CHECK_OK(add(plan.folder / "root", -1, false));
  CHECK_OK(add(plan.folder / "layers", -1, false));
  CHECK_OK(add(plan.executor, user_namespace, true));
  CHECK_OK(add(plan.executor, user_namespace, true));
  for (const Overlay& overlay : overlays_of(plan))
    CHECK_OK(add(overlay.source, user_namespace, true));
  return mounts;
}

base::Result<base::Done> send_mounts(int socket, const std::vector<base::Fd>& mounts) {
  if (mounts.size() > kHandedMax)
    return base::error(base::ErrorCode::kInvalid, "more than ", std::to_string(kHandedMax),
                       " folders to show; name fewer extra ones");
  char go = 'g';
  iovec text{&go, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int) * kHandedMax)] = {};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  if (!mounts.empty()) {
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * mounts.size());
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * mounts.size());
    for (std::size_t number = 0; number < mounts.size(); ++number) {
      const int mount = mounts[number].get();
      std::memcpy(CMSG_DATA(rights) + number * sizeof mount, &mount, sizeof mount);
    }
  }
  if (::sendmsg(socket, &message, MSG_NOSIGNAL) != 1)
    return base::errno_error("hand over", "the mounts", errno);
  return base::Done{};
}

base::Result<std::vector<base::Fd>> receive_mounts(int socket) {
  char go = 0;
  iovec text{&go, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int) * kHandedMax)];
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof room;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || (message.msg_flags & MSG_CTRUNC))
    return base::error(base::ErrorCode::kUnavailable, "the builder went away");
  std::vector<base::Fd> mounts;
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (!rights || rights->cmsg_type != SCM_RIGHTS) return mounts;
  const std::size_t count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (std::size_t number = 0; number < count; ++number) {
    int mount = -1;
    std::memcpy(&mount, CMSG_DATA(rights) + number * sizeof mount, sizeof mount);
    mounts.emplace_back(mount);
  }
  return mounts;
}

}  // namespace local_e2b
