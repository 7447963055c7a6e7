#include "libs/base/unix_socket.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "libs/base/files.h"
#include "libs/base/strings.h"

namespace base {
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::size_t kGroupBytesMax = 1u << 20;  // Of one with all its members.

// A path as the kernel takes one for a socket: a long one leads through its open folder.
struct Address {
  sockaddr_un socket = {.sun_family = AF_UNIX, .sun_path = {}};
  Fd folder = {};

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket); }
};

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

Result<Address> address_of(const fs::path& path) {
  Address address;
  std::string text = path.string();
  if (text.size() > kPathBytesMax) {
    const fs::path parent = folder_of(path);
    address.folder = Fd(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!address.folder) return errno_error("open", parent, errno);
    text = "/proc/self/fd/" + std::to_string(address.folder.get()) + "/" + path.filename().string();
  }
  if (text.size() > kPathBytesMax)
    return error(ErrorCode::kInvalid, path.string(), ": no socket can have so long a name");
  text.copy(address.socket.sun_path, kPathBytesMax);
  return address;
}

Result<Fd> make_socket() {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return error(ErrorCode::kUnavailable, "cannot make a socket: ", strerror(errno));
  return socket;
}

Error taken(const fs::path& path, std::string_view by) {
  return error(ErrorCode::kConflict, "cannot listen at ", path.string(), ": ", by);
}

// Another user's file is in the way, and what is to be known of it cannot be.
Error denied(const fs::path& path, const fs::path& file, std::string_view hidden) {
  struct stat about{};
  const std::string owner = ::lstat(file.c_str(), &about) == 0 ? std::to_string(about.st_uid) : "?";
  return error(ErrorCode::kDenied, "cannot listen at ", path.string(), ": ", file.string(),
               " is of uid ", owner, ", and uid ", std::to_string(::geteuid()), " may not ", hidden,
               "; remove it when nobody listens there any more, or listen elsewhere");
}

// Makes a lock that those can take who may have the place when it is free, since the lock stays
// when its owner has gone: all who may make and remove files in its folder. In one where each may
// remove only his own (the sticky bit), that is its owner. Who is not of the folder's group cannot
// give it to that; then it is of his own, whose members are others to the folder. What is there
// already stays as it is.
void make_lock(const fs::path& path) {
  const Fd made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  struct stat folder{};
  if (!made || ::stat(folder_of(path).c_str(), &folder) != 0 || (folder.st_mode & S_ISVTX)) return;
  mode_t writers = folder.st_mode & (S_IWGRP | S_IWOTH);
  if (::fchown(made.get(), static_cast<uid_t>(-1), folder.st_gid) != 0)
    writers = writers & S_IWOTH ? S_IWGRP | S_IWOTH : 0;
  static_cast<void>(::fchmod(made.get(), 0600 | writers | writers << 1));  // Who writes may read.
}

// Holds the place for whoever has it; what is done there meanwhile is done by nobody else.
Result<Fd> take_place(const fs::path& path) {
  const fs::path lock = path.string() + ".lock";
  make_lock(lock);
  auto place = lock_file(lock);
  if (place) return place;
  if (place.error().code == ErrorCode::kConflict)
    return taken(path, "another process listens there");
  if (place.error().code == ErrorCode::kDenied && ::access(lock.c_str(), F_OK) == 0)
    return denied(path, lock, "lock it");
  return place;
}

// Whether a socket stands there, or nothing.
Result<bool> is_socket_at(const fs::path& path) {
  struct stat about{};
  if (::lstat(path.c_str(), &about) == 0) {
    if (S_ISSOCK(about.st_mode)) return true;
    return taken(path, "something that is no socket stands there");
  }
  if (errno == ENOENT) return false;
  return errno_error("look at", path, errno);
}

// Removes what a process that ended left there. One that keeps no lock may listen there, too.
Result<Done> make_room_at(const fs::path& path, const Address& address) {
  TRY(const bool stands, is_socket_at(path));
  if (!stands) return Done{};
  TRY(const Fd socket, make_socket());
  const bool heard = ::connect(socket.get(), address.get(), sizeof address.socket) == 0;
  if (!heard && errno == EACCES) return denied(path, path, "see whether anybody listens");
  if (heard || errno != ECONNREFUSED) return taken(path, "another process listens there");
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return errno_error("remove", path, errno);
  return Done{};
}

}  // namespace

std::optional<gid_t> find_group(const std::string& text) {
  std::vector<char> buffer(kGroupBytesMax);
  group found{};
  group* result = nullptr;
  ::getgrnam_r(text.c_str(), &found, buffer.data(), buffer.size(), &result);
  if (result) return found.gr_gid;
  const auto number = parse_integer(text);
  if (!number || *number < 0 || *number >= UINT32_MAX) return std::nullopt;
  return static_cast<gid_t>(*number);
}

Result<std::unique_ptr<UnixListener>> UnixListener::at(const fs::path& path,
                                                       const SocketRights& rights) {
  TRY(const Address address, address_of(path));
  TRY(Fd socket, make_socket());
  CHECK_OK(is_socket_at(path));
  TRY(Fd place, take_place(path));
  CHECK_OK(make_room_at(path, address));
  struct stat about{};
  if (::bind(socket.get(), address.get(), sizeof address.socket) != 0)
    return errno_error("listen at", path, errno);
  const auto group = rights.group.value_or(static_cast<gid_t>(-1));
  const bool open = ::chown(path.c_str(), static_cast<uid_t>(-1), group) == 0 &&
                    ::chmod(path.c_str(), rights.mode) == 0 && ::lstat(path.c_str(), &about) == 0 &&
                    ::listen(socket.get(), SOMAXCONN) == 0;
  if (!open) {
    const Error failed = errno_error("listen at", path, errno);
    ::unlink(path.c_str());
    return failed;
  }
  return std::unique_ptr<UnixListener>(
      new UnixListener(path, std::move(place), std::move(socket), about.st_dev, about.st_ino));
}

UnixListener::~UnixListener() {
  if (stands()) ::unlink(path_.c_str());
}

Result<Fd> UnixListener::share() const {
  Fd shared(::fcntl(socket_.get(), F_DUPFD_CLOEXEC, 0));
  if (!shared) return errno_error("share", path_, errno);
  return shared;
}

bool UnixListener::stands() const {
  struct stat about{};
  return ::lstat(path_.c_str(), &about) == 0 && about.st_dev == device_ && about.st_ino == inode_;
}

Result<Fd> connect_to(const fs::path& path) {
  TRY(const Address address, address_of(path));
  TRY(Fd socket, make_socket());
  if (::connect(socket.get(), address.get(), sizeof address.socket) != 0)
    return errno_error("connect to", path, errno);
  return socket;
}

Result<Peer> peer_of(int socket) {
  ucred told{};
  socklen_t size = sizeof told;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &told, &size) != 0)
    return error(ErrorCode::kUnavailable, "cannot tell who connected: ", strerror(errno));
  Peer peer{.pid = told.pid, .uid = told.uid, .gid = told.gid};
  socklen_t bytes = 0;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, nullptr, &bytes) == 0 || errno != ERANGE)
    return peer;
  peer.groups.resize(bytes / sizeof(gid_t));
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &bytes) != 0)
    return error(ErrorCode::kUnavailable, "cannot tell whose groups: ", strerror(errno));
  peer.groups.resize(bytes / sizeof(gid_t));
  return peer;
}

}  // namespace base
