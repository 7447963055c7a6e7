#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/crypto.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace executor {

// A program that this one runs, and that comes in a file of its own: which one is meant, to the
// byte, so that whoever brings it need not be trusted.
struct Tool {
  std::string_view name, sha256;  // In hexadecimal.
  std::int64_t bytes = 0;
};
// ripgrep 15.0.0 as npm's @vscode/ripgrep-linux-* 1.18.0 have it, static.
const Tool& ripgrep();

// Where a tool is, and how it gets there. All of it blocks; safe to use from several threads.
class ToolPlace {
 public:
  // `folder` is private to one process at a time, and made when it is needed: what an earlier one
  // left there on its way goes now. Of `others` each may hold the tool too, under its name.
  ToolPlace(Tool tool, std::string folder, std::vector<std::string> others);
  ToolPlace(const ToolPlace&) = delete;
  ToolPlace& operator=(const ToolPlace&) = delete;

  const Tool& tool() const { return tool_; }
  // The path of one that is that very file; its content is looked at once, and when the file
  // changes.
  std::optional<std::string> find();

  // One on its way. Dropped before its commit, it leaves nothing.
  class Delivery {
   public:
    ~Delivery();
    Delivery(const Delivery&) = delete;
    Delivery& operator=(const Delivery&) = delete;
    // kInvalid: there is more of it than there may be.
    base::Result<base::Done> add(std::string_view bytes);
    // Its path. kInvalid: it is another file.
    base::Result<std::string> commit();

   private:
    friend class ToolPlace;
    Delivery(const ToolPlace& place, std::string path, base::Fd file)
        : place_(place), path_(std::move(path)), file_(std::move(file)) {}
    const ToolPlace& place_;
    std::string path_;
    base::Fd file_;
    base::Sha256 digest_;
    std::int64_t bytes_ = 0;
    bool committed_ = false;
  };
  base::Result<std::unique_ptr<Delivery>> receive() const;

 private:
  void sweep() const;
  std::string place_in(const std::string& folder) const;
  bool holds_the_tool(const std::string& path, std::string& version) const;

  const Tool tool_;
  const std::string folder_;
  const std::vector<std::string> others_;
  std::mutex mutex_;
  std::string known_path_, known_version_;  // Of the one that was found last.
};

}  // namespace executor
