#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

#include "executor/filesystem/failure.h"
#include "executor/filesystem/version.h"

namespace executor {

struct ReadRequest {
  enum class As { kBytes, kText } as = As::kBytes;
  // More than this is kTooLarge, be it known at once or found while reading.
  std::optional<std::uint64_t> bytes_max = {};
  std::uint64_t from = 0;  // Bytes only.
  std::optional<std::uint64_t> length = {};
};

// The content of a regular file, in pieces. Never waits for the other end of a pipe. Its calls
// block, but for what says otherwise; one at a time.
class FileReader {
 public:
  static constexpr std::size_t kPieceBytesMax = 1u << 20;

  // `key` is a target's. kNotFound, then kNotRegularFile, then kTooLarge; kIoError where a link has
  // come into the way.
  static FsResult<FileReader> open(const std::string& key, const ReadRequest& request);
  // The same of what is open as O_PATH.
  static FsResult<FileReader> open(const base::Fd& place, const std::string& key,
                                   const ReadRequest& request);

  const FileInfo& info() const { return info_; }
  // At least one byte and about `bytes_max` at most, as they stand in the file; empty at the end.
  // Text comes in whole characters. kNotText when the next bytes are none, also after good pieces;
  // kTooLarge when the file has grown past the request's bound.
  FsResult<std::string> next(std::size_t bytes_max, const std::stop_token& abort);
  // The next piece as far as it is in memory (preadv2(2), RWF_NOWAIT); else an error, and this
  // reader is of no more use.
  FsResult<std::string> next_from_memory(std::size_t bytes_max);
  // Whether the last piece is known to have been all that was left.
  bool at_end() const { return at_end_; }

 private:
  FileReader() = default;
  FsResult<std::string> read(std::size_t bytes);
  FsResult<std::string> next_text(std::string bytes, bool last);

  std::string path_;
  base::Fd file_;
  FileInfo info_;
  ReadRequest request_;
  std::uint64_t read_ = 0;  // Bytes so far.
  bool at_end_ = false;
  int flags_ = 0;      // Of each read.
  std::string begun_;  // The beginning of a character whose rest is yet to come.
};

// All of it at once; what is longer than `request.bytes_max` is kTooLarge.
FsResult<std::string> read_whole(FileReader reader, const std::stop_token& abort);

}  // namespace executor
