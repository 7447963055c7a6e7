#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/subprocess/subprocesses.h"
#include "libs/aio/task.h"

namespace executor {

// One run of a program whose output is read as it comes. Its owner ends it with stop(), whatever
// happened.
class SearchRun {
 public:
  SearchRun(Subprocesses& programs, std::shared_ptr<Subprocess> process)
      : programs_(programs), process_(std::move(process)) {}
  SearchRun(const SearchRun&) = delete;
  SearchRun& operator=(const SearchRun&) = delete;

  // The next bytes of its output; empty at the end.
  aio::Task<ProcessResult<std::string>> next();
  struct End {
    Exit exit;
    std::string errors;  // The last of what it said about them.
  };
  // Once its output has ended.
  aio::Task<ProcessResult<End>> end();
  // Kills it, if it still runs, and returns when it is proven that nothing of it is left.
  aio::Task<ProcessResult<base::Done>> stop();

 private:
  Subprocesses& programs_;
  std::shared_ptr<Subprocess> process_;
  std::int64_t at_ = 0;
};

// Programs that search, apart from those that harnesses start.
class Searches {
 public:
  static constexpr std::size_t kAtOnceMax = 8;

  explicit Searches(SubprocessSite site);
  // kBusy when kAtOnceMax are at work.
  aio::Task<ProcessResult<std::shared_ptr<SearchRun>>> begin(std::vector<std::string> argv,
                                                             std::string folder);
  // As Subprocesses has them.
  void lose_all() { programs_.lose_all(); }
  aio::Task<> end_all() { return programs_.end_all(); }
  aio::Task<> tend() { return programs_.tend(); }

 private:
  Subprocesses programs_;
};

}  // namespace executor
