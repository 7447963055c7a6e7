#include "libs/aio/background.h"

#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace aio {

namespace asio = boost::asio;

struct Background::State {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<std::function<void()>> waiting;
  std::size_t waiting_max = 0;
  bool ending = false;
  std::vector<std::jthread> threads;

  void work() {
    for (;;) {
      std::function<void()> job;
      {
        std::unique_lock lock(mutex);
        arrived.wait(lock, [this] { return ending || !waiting.empty(); });
        if (waiting.empty()) return;
        job = std::move(waiting.front());
        waiting.pop_front();
      }
      job();
    }
  }

  void end() {
    {
      std::lock_guard lock(mutex);
      ending = true;
    }
    arrived.notify_all();
  }

  bool add(std::function<void()> job) {
    {
      std::lock_guard lock(mutex);
      if (waiting.size() >= waiting_max) return false;
      waiting.push_back(std::move(job));
    }
    arrived.notify_one();
    return true;
  }
};

Background::Background(int threads, std::size_t waiting_max) : state_(std::make_shared<State>()) {
  state_->waiting_max = waiting_max;
  for (int i = 0; i < threads; ++i)
    state_->threads.emplace_back([state = state_.get()] { state->work(); });
}

Background::~Background() {
  state_->end();
  state_->threads.clear();
}

namespace {

// Resumes the coroutine on its loop; the guard keeps the loop running until then.
template <typename Handler>
struct Resume {
  Resume(Handler given, const Executor& executor) : handler(std::move(given)), guard(executor) {}
  Handler handler;
  asio::executor_work_guard<Executor> guard;
};

}  // namespace

Task<bool> Background::run_job(std::function<void()> job) {
  const auto state = state_;
  const Executor executor = co_await asio::this_coro::executor;
  co_return co_await asio::async_initiate<decltype(asio::use_awaitable), void(bool)>(
      [state, executor, job = std::move(job)](auto handler) mutable {
        using Handler = decltype(handler);
        auto resume = std::make_shared<Resume<Handler>>(std::move(handler), executor);
        auto finish = [executor](std::shared_ptr<Resume<Handler>> resume, bool done) {
          asio::post(executor, [resume = std::move(resume), done]() mutable {
            Handler taken = std::move(resume->handler);
            resume.reset();
            std::move(taken)(done);
          });
        };
        const bool accepted = state->add([job = std::move(job), resume, finish]() mutable {
          job();
          finish(std::move(resume), true);
        });
        if (!accepted) finish(std::move(resume), false);
      },
      asio::use_awaitable);
}

}  // namespace aio
