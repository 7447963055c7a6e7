#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "libs/manifests/disk.h"

namespace manifests {

struct JournalOptions {
  std::uint64_t file_bytes_max = 8u << 20;  // Then the next file is begun; earlier on a small disk.
  std::size_t files_max = 4;                // No more are begun before one is dropped.
};

// Lines that outlive this process once they are appended, and a power loss once they are synced;
// one sync serves everybody who waits for one. Whoever holds a Mark keeps the files from that of
// its line on: what the others tell must stand elsewhere when they are dropped. Safe to use from
// many threads.
class Journal {
  struct File;

 public:
  // Where a line ends. A mark that was made by nobody is of a line that needs no sync.
  class Mark {
   public:
    bool operator==(const Mark&) const = default;

   private:
    friend class Journal;
    std::shared_ptr<File> file_;
    std::uint64_t end_ = 0;
  };

  Journal(std::filesystem::path folder, const Disk& disk, JournalOptions options = {})
      : folder_(std::move(folder)), disk_(disk), options_(options) {}

  // What earlier processes appended, eldest first; once, before anything else. Ends within each
  // file with the first line that is not whole: a crash tears only what nobody relied upon yet.
  base::Result<std::vector<std::string>> read();

  // `line` holds no line break. After a failure nothing of it is there.
  base::Result<Mark> append(std::string_view line);
  // After a failure nobody knows whether the line is on disk: it fails for good, and later lines go
  // into another file.
  base::Result<base::Done> sync(const Mark& mark);

  // How many of the eldest files nobody holds a mark of; the one that grows is never among them.
  std::size_t settled();
  // Removes that many, the eldest first.
  base::Result<base::Done> drop(std::size_t files);
  // Lets go of the newest too: the next line goes into another file.
  void end_newest();

 private:
  struct File {
    std::filesystem::path path;
    base::Fd fd;
    std::uint64_t bytes_max = 0;
    std::atomic<std::uint64_t> written = 0;
    std::atomic<bool> damaged = false;  // Nothing may be added.
    std::mutex syncing;
    std::uint64_t synced = 0;  // Under `syncing`.
  };
  struct Known {
    std::filesystem::path path;
    std::weak_ptr<File> file = {};
  };
  base::Result<base::Done> begin_file();

  const std::filesystem::path folder_;
  const Disk& disk_;
  const JournalOptions options_;
  std::mutex mutex_;         // Of all below; held over an append, not over a sync.
  std::deque<Known> files_;  // Eldest first.
  std::shared_ptr<File> newest_;
  std::uint64_t next_number_ = 1;
};

}  // namespace manifests
