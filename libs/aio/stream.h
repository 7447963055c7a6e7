#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "libs/aio/task.h"
#include "libs/base/clock.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace aio {

// Bytes both ways over a connected socket, a pair of pipes or a terminal, or over something that
// makes another of such a one, like TLS. One read and one write may be under way at once. Whoever
// reads or writes on and on gives way to the rest of the loop, also when the peer never makes him
// wait. Limit a wait with aio::within. Errors: kUnavailable when the other side or this one closed
// it, kCancelled when the awaiting task was cancelled.
class Stream {
 public:
  // Makes the descriptors non-blocking. A missing one (an empty Fd) is a direction already closed.
  static std::shared_ptr<Stream> over(Executor executor, base::Fd both_ways);
  static std::shared_ptr<Stream> over(Executor executor, base::Fd in, base::Fd out);
  Stream() = default;
  virtual ~Stream() = default;  // Closes it.
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // At least one byte, or 0 at the end (a terminal whose last process left has ended too).
  virtual Task<base::Result<std::size_t>> read(char* buffer, std::size_t size) = 0;
  // All of it; the bytes must stay until it returns. Writing to a pipe without a reader raises
  // SIGPIPE: a program that writes to pipes ignores that signal.
  virtual Task<base::Result<base::Done>> write(std::string_view bytes) = 0;
  // Until there is something to read, or the end.
  virtual Task<base::Result<base::Done>> wait_readable() = 0;
  // Until the other side has an urgent word (POLLPRI). A file of the kernel that says so when it
  // changes, like cgroup.events, has one from then until it is read again.
  virtual Task<base::Result<base::Done>> wait_urgent() = 0;

  virtual void close_write() = 0;  // The other side reads the end.
  virtual void close() = 0;
  virtual void reset() = 0;  // Closes at once; a TCP peer sees a reset.
  // Gives up the descriptor of both ways, open; this stream is closed then. None, and nothing
  // happens, where what is read and written is not what the descriptor carries.
  virtual base::Fd release() = 0;
  virtual bool open() const = 0;
  virtual int read_descriptor() const = 0;  // For ioctl; -1 when closed.
};

// Connects `socket` (an unconnected TCP socket, perhaps made in another network namespace) to an
// address, IPv4 or IPv6, which must be of its family. kUnavailable: refused, unreachable or too
// slow.
Task<base::Result<std::shared_ptr<Stream>>> connect(base::Fd socket, std::string address, int port,
                                                    base::Milliseconds timeout);
// The same over a socket of this process's own network.
Task<base::Result<std::shared_ptr<Stream>>> connect(std::string address, int port,
                                                    base::Milliseconds timeout);

}  // namespace aio
