#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "libs/wire/frames/message.h"
#include "libs/wire/session/client_session.h"

// Between a descriptor of this process and a stream of a session, for loops of Connection::turn():
//   pollfd set[] = {in.wants(session), out.wants(session)};
//   connection.turn(set);
//   in.work(session, set[0].revents), out.work(session, set[1].revents);
// A side that is slow holds the other back. Descriptors stay their owner's, and as they are: others
// share them, so they are not made non-blocking.
namespace wire {

// Reads from a descriptor as far as there is room in the stream, to its end.
class Source {
 public:
  static constexpr std::size_t kReadBytes = 64u << 10;

  Source(int descriptor, std::uint32_t stream) : descriptor_(descriptor), stream_(stream) {}

  pollfd wants(const ClientSession& session) const;
  void work(ClientSession& session, short revents);
  void stop() { done_ = true; }  // Nobody wants more of it.
  bool done() const { return done_; }
  std::uint32_t stream() const { return stream_; }
  std::int64_t bytes() const { return bytes_; }
  // Of reading: errno. The stream has ended there all the same.
  std::optional<int> problem() const { return problem_; }

 private:
  int descriptor_;
  std::uint32_t stream_;
  bool done_ = false;
  std::int64_t bytes_ = 0;
  std::optional<int> problem_;
};

// Writes what comes in a stream to a descriptor.
class Sink {
 public:
  // A pipe that can be written to takes as many without blocking (pipe(7), PIPE_BUF).
  static constexpr std::size_t kWriteBytes = 4096;

  // What is written in place of a piece.
  using Change = std::function<std::string(Piece)>;

  Sink(int descriptor, std::uint32_t stream, Change change = {})
      : descriptor_(descriptor), stream_(stream), change_(std::move(change)) {}

  pollfd wants(ClientSession& session);
  void work(ClientSession& session, short revents);
  // The end was seen and all before it written, or nobody reads the descriptor any more.
  bool done() const { return done_; }
  std::uint32_t stream() const { return stream_; }
  std::int64_t bytes() const { return bytes_; }
  // The stream broke off there, and all before it is written.
  const std::optional<Failure>& failure() const { return failure_; }
  // Of writing: errno. What came then was not read.
  std::optional<int> problem() const { return problem_; }

 private:
  void look(ClientSession& session);
  bool write_some();
  void give_up(ClientSession& session, int problem);

  int descriptor_;
  std::uint32_t stream_;
  Change change_;
  std::string held_;
  std::size_t written_ = 0;
  bool ended_ = false, done_ = false;
  std::int64_t bytes_ = 0;
  std::optional<Failure> failure_, failure_behind_;  // The latter behind what is held.
  std::optional<int> problem_;
};

}  // namespace wire
