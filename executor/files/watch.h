#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/files/file_error.h"
#include "libs/aio/loop.h"
#include "libs/aio/stream.h"
#include "libs/aio/task.h"

namespace executor {

enum class Change { kCreated, kWritten, kRemoved, kRenamed, kMode };

struct WatchEvent {
  std::string name;  // Relative to the watched folder.
  Change change = Change::kCreated;
  bool operator==(const WatchEvent&) const = default;
};

// Watches one folder, or the tree below it, through inotify. An upload looks as if the file had
// been written in place: its staged name is never seen.
class Watch {
 public:
  static constexpr std::size_t kEventsMax = 8192;     // Held until somebody takes them.
  static constexpr std::size_t kFoldersMax = 50'000;  // In one recursive watch.

  // What is watched: the folders, and the descriptor that tells of them.
  class Folders {
   public:
    // Walks the whole tree if `recursive`, so call it off the loop. ENOENT; ENOTDIR when it is no
    // folder; ENOTSUP on a network filesystem, whose changes made elsewhere are not seen, unless
    // allowed; ENOSPC when the kernel has no watches left.
    static FileResult<Folders> find(const std::string& top, bool recursive, bool allow_network);

   private:
    friend class Watch;
    Folders(std::string top, bool recursive, base::Fd inotify);
    FileResult<base::Done> add(const std::string& relative);
    // The folders below; `met` gets the names of all that stands there.
    void add_below(const std::string& relative, std::vector<std::string>& met);

    std::string top_;
    bool recursive_;
    base::Fd inotify_;  // Handed to the watch's stream; its number stays in descriptor_.
    int descriptor_;
    std::map<int, std::string> relative_;  // By watch descriptor.
    std::size_t lost_ = 0;                 // Folders that could not be added.
  };

  Watch(aio::Executor executor, Folders folders);
  // Reads what the kernel tells until stop(); spawn it once.
  static aio::Task<> run(std::shared_ptr<Watch> watch);
  void stop();

  std::vector<WatchEvent> take();  // Those held, oldest first; none is waited for.
  aio::Task<> wait();              // Until there may be something to take.
  // How many were dropped for want of room since last asked.
  std::size_t take_lost() { return std::exchange(folders_.lost_, 0) + std::exchange(lost_, 0); }
  const std::string& folder() const { return folders_.top_; }
  bool stopped() const { return stopped_; }

 private:
  void read_batch(const char* bytes, std::size_t size);
  void handle(int watched, std::uint32_t mask, std::uint32_t cookie, const std::string& name);
  void add_new(const std::string& relative);
  void put(const std::string& name, Change change);

  Folders folders_;
  std::shared_ptr<aio::Stream> stream_;
  aio::Condition arrived_;
  std::map<std::uint32_t, std::string> staged_;  // Cookies of staged files on their way.
  std::deque<WatchEvent> events_;
  std::size_t lost_ = 0;
  bool stopped_ = false;
};

}  // namespace executor
