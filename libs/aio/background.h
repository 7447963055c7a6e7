#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "libs/aio/task.h"
#include "libs/base/result.h"

namespace aio {

// A few threads for work that blocks (mounts, big files, waiting for a child), awaited from the
// loop. Destroy it before the loop: its destructor waits for the work in hand.
class Background {
 public:
  explicit Background(int threads, std::size_t waiting_max = 4096);
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Calls `work` on one of the threads and resumes on the loop with the Result it returned;
  // kUnavailable when too much work already waits. Cancelling does not interrupt work that runs:
  // the await returns when it is done, so what `work` refers to may live in the awaiting coroutine.
  template <typename Work>
  Task<std::invoke_result_t<Work>> run(Work work) {
    using Returned = std::invoke_result_t<Work>;
    const auto returned = std::make_shared<std::optional<Returned>>();
    std::function<void()> job = [returned, work = std::make_shared<Work>(std::move(work))] {
      returned->emplace((*work)());
    };
    const bool done = co_await run_job(std::move(job));
    if (!done)
      co_return base::error(base::ErrorCode::kUnavailable, "too much background work is waiting");
    co_return *std::move(*returned);
  }

 private:
  struct State;
  Task<bool> run_job(std::function<void()> job);
  std::shared_ptr<State> state_;
};

}  // namespace aio
