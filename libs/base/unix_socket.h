#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libs/base/fd.h"
#include "libs/base/result.h"

// Sockets that stand in the file system (unix(7)), at paths of any length.
namespace base {

// Who may connect to one: who has the right to write to its file.
struct SocketRights {
  mode_t mode = 0600;
  std::optional<gid_t> group = {};  // Of the file; nothing: as it comes.
};

// The group of that name, or number; nothing: there is none.
std::optional<gid_t> find_group(const std::string& text);

// Listens at a path. Its file goes with it, unless another has taken the place since. Who listens
// is known by a lock beside it ("PATH.lock", which stays): of those that begin at once one gets the
// place, and nobody takes away the file of another. Whoever may have the place, since he may make
// and remove files in its folder, may take the lock too.
class UnixListener {
 public:
  // Nobody can connect before the rights are set. What a process that ended left there makes room.
  // kConflict: another listens there, which is waited out for half a second, or it is no socket.
  // kDenied: this user may not listen there.
  static Result<std::unique_ptr<UnixListener>> at(const std::filesystem::path& path,
                                                  const SocketRights& rights);
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  // Another descriptor of the same socket.
  Result<Fd> share() const;
  // Whether who connects to the path still comes here.
  bool stands() const;

 private:
  UnixListener(std::filesystem::path path, Fd place, Fd socket, dev_t device, ino_t inode)
      : path_(std::move(path)),
        place_(std::move(place)),
        socket_(std::move(socket)),
        device_(device),
        inode_(inode) {}

  const std::filesystem::path path_;
  const Fd place_;  // The lock.
  const Fd socket_;
  const dev_t device_;  // Of the file.
  const ino_t inode_;
};

// A connection, non-blocking. kNotFound: there is none; kDenied: not for us; kUnavailable: nobody
// listens there, or more wait already than it takes.
Result<Fd> connect_to(const std::filesystem::path& path);

// Who was at the other end when it connected, as the kernel tells.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups = {};  // The others it is in.
  bool operator==(const Peer&) const = default;
};
Result<Peer> peer_of(int socket);

}  // namespace base
