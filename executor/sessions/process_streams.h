#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "executor/subprocess/subprocess.h"
#include "libs/aio/loop.h"
#include "libs/wire/frames/process_operations.h"
#include "libs/wire/web/web_links.h"

namespace executor {

enum class ProcessEnd { kInput, kOut, kErrors };

// The streams of sessions that carry the ends of processes. Each end has one stream at a time, and
// each stream waits for its own peer alone.
//   a pipe:      what the peer has for good is acknowledged, so that another stream can go on there
//   a collected: what its tail has let go of meanwhile is skipped
//   stdin:       no more is taken in than the process has room for
class ProcessStreams {
 public:
  using Key = std::pair<std::string, std::uint32_t>;  // A session and its stream.

  ProcessStreams(aio::Executor executor, wire::WebLinks& links)
      : executor_(executor), links_(links), tasks_(executor) {}

  // Of a process that has just begun, all that it writes: offset 0 of the stream is its first byte,
  // also when a collected output has let go of that by now.
  void carry_whole(const std::shared_ptr<Subprocess>& process, ProcessEnd end, Key key);
  // Where offset 0 of the stream stands in the end that it carries from now on; what carried that
  // before ends with a conflict. An output begins at `from`, which has been written, or behind it
  // where that is gone.
  wire::OutputAt carry_output(const std::shared_ptr<Subprocess>& process, ProcessEnd end, Key key,
                              std::int64_t from);
  std::int64_t carry_input(const std::shared_ptr<Subprocess>& process, Key key);

  void move(const Key& key);             // There is news of a stream.
  void end(const std::string& session);  // It is gone, with its streams.
  std::size_t size() const { return taps_.size(); }

 private:
  struct Tap;
  // What a stream waits for next.
  enum class Next { kNothing, kPeer, kProcess, kOver };

  std::shared_ptr<Tap> begin(const std::shared_ptr<Subprocess>& process, ProcessEnd end, Key key);
  void take_over(Tap& older);
  void carry_from(const std::shared_ptr<Subprocess>& process, ProcessEnd end, Key key,
                  std::int64_t offset);
  Next pass_on(Tap& tap, ProcessOutput& output);
  Next take_in(Tap& tap, ProcessInput& input);
  static aio::Task<> follow(ProcessStreams& streams, std::shared_ptr<Tap> tap,
                            std::shared_ptr<ProcessOutput> output);
  static aio::Task<> follow(ProcessStreams& streams, std::shared_ptr<Tap> tap,
                            std::shared_ptr<ProcessInput> input);
  static aio::Task<> feed(ProcessStreams& streams, std::shared_ptr<Tap> tap,
                          std::shared_ptr<ProcessInput> input);

  aio::Executor executor_;
  wire::WebLinks& links_;
  std::map<Key, std::shared_ptr<Tap>> taps_;
  aio::TaskGroup tasks_;
};

}  // namespace executor
