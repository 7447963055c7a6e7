#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "executor/archive/archive.h"
#include "executor/archive/pipe.h"
#include "libs/aio/background.h"
#include "libs/aio/loop.h"
#include "libs/aio/task.h"

namespace executor {

// Archives that are being made and unpacked, each on a thread of its own beside the loop, so that a
// large one holds nobody up. On the loop.
class Archives {
 public:
  static constexpr std::size_t kAtOnceMax = 4;

  Archives(aio::Executor executor, std::shared_ptr<Stagings> stagings);
  ~Archives();  // Breaks off what is at work.
  Archives(const Archives&) = delete;
  Archives& operator=(const Archives&) = delete;

  // What an archive goes through, and a place among those at work, for as long as it is held.
  // Nothing when there are kAtOnceMax.
  std::shared_ptr<Pipe> join();

  // The archive goes into the pipe, and behind it what `tell` makes of the report. The pipe has
  // ended, or is broken off, when this returns.
  using Tell = std::function<std::string(const archives::Report&)>;
  aio::Task<ArchiveResult<archives::Report>> create(std::shared_ptr<Pipe> pipe, std::string key,
                                                    CreateRequest request, Tell tell,
                                                    std::stop_token abort);
  // The archive comes out of the pipe, to its end.
  aio::Task<ArchiveResult<Extracted>> extract(std::shared_ptr<Pipe> pipe, std::string key,
                                              ExtractRequest request, std::stop_token abort);

 private:
  aio::Executor executor_;
  std::shared_ptr<Stagings> stagings_;
  std::vector<std::weak_ptr<Pipe>> at_work_;
  aio::Background threads_;
};

}  // namespace executor
