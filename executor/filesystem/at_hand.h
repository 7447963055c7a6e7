#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "executor/filesystem/identity.h"
#include "executor/filesystem/read.h"
#include "executor/filesystem/version.h"
#include "libs/base/fd.h"

namespace executor {

struct OpenedFile {
  std::shared_ptr<FileReader> reader;
  std::string first;  // Its first piece; empty: so is the file.
};

// What can be told of files without waiting for anything: what the kernel has in memory, of one
// filesystem that is kept on this machine. So the loop may look for itself, and nobody has to be
// woken for it. Nothing means that it has to be looked for where one may wait, whatever comes of
// that then.
class AtHand {
 public:
  AtHand() = default;  // Nothing is at hand.
  // The filesystem of `folder`. Blocks.
  explicit AtHand(const std::string& folder);

  // As stat_target() would say.
  std::optional<FileInfo> stat(const FileAddress& address) const;
  std::optional<OpenedFile> open(const FileAddress& address, const ReadRequest& request,
                                 std::size_t bytes_max) const;

 private:
  struct Found {
    base::Fd place;
    std::string path;
  };
  std::optional<Found> find(const FileAddress& address) const;

  base::Fd folder_;  // Held, so that no other filesystem can come to have its number.
  std::uint64_t device_ = 0;
};

}  // namespace executor
