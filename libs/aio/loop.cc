#include "libs/aio/loop.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <list>

namespace aio {
namespace {

namespace asio = boost::asio;
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

// Cancellation unwinds a coroutine with this exception; any other that leaves a task is a bug.
bool is_cancellation(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const boost::system::system_error& error) {
    return error.code() == asio::error::operation_aborted;
  } catch (const asio::multiple_exceptions& several) {
    return is_cancellation(several.first_exception());
  } catch (...) {
    return false;
  }
}

}  // namespace

struct Loop::State {
  asio::io_context context{1};
};

Loop::Loop() : state_(std::make_unique<State>()) {}
Loop::~Loop() = default;
Executor Loop::executor() { return state_->context.get_executor(); }

int Loop::run(Task<int> main) {
  int exit_code = 0;
  asio::co_spawn(state_->context, std::move(main),
                 [this, &exit_code](std::exception_ptr thrown, int returned) {
                   if (thrown) std::rethrow_exception(thrown);
                   exit_code = returned;
                   state_->context.stop();
                 });
  state_->context.restart();
  state_->context.run();
  return exit_code;
}

Task<> sleep_for(base::Milliseconds duration) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  timer.expires_after(duration);
  co_await timer.async_wait(asio::use_awaitable);
}

Task<> sleep_until(base::Moment moment) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  timer.expires_at(moment);
  co_await timer.async_wait(asio::use_awaitable);
}

namespace {
Task<int> wait_for_any(std::unique_ptr<asio::signal_set> signals) {
  co_return co_await signals->async_wait(asio::use_awaitable);
}
Task<int> wait_for_listed(std::list<int> numbers) {
  auto signals = std::make_unique<asio::signal_set>(co_await asio::this_coro::executor);
  for (const int number : numbers) signals->add(number);
  co_return co_await wait_for_any(std::move(signals));
}
}  // namespace

Task<int> wait_for_signal(std::initializer_list<int> signals) {
  return wait_for_listed(std::list<int>(signals));
}

Task<int> race(Task<> first, Task<> second) {
  using namespace asio::experimental::awaitable_operators;
  std::exception_ptr failed;
  try {
    const auto winner = co_await (std::move(first) || std::move(second));
    co_return static_cast<int>(winner.index());
  } catch (const asio::multiple_exceptions& several) {
    failed = several.first_exception();
  }
  std::rethrow_exception(failed);
}

Task<> both(Task<> first, Task<> second) {
  using namespace asio::experimental::awaitable_operators;
  std::exception_ptr failed;
  try {
    co_await (std::move(first) && std::move(second));
    co_return;
  } catch (const asio::multiple_exceptions& several) {
    failed = several.first_exception();
  }
  std::rethrow_exception(failed);
}

struct Condition::State {
  explicit State(Executor executor) : timer(std::move(executor)) {
    timer.expires_at(asio::steady_timer::time_point::max());
  }
  asio::steady_timer timer;
};

namespace {
Task<> wait_on(std::shared_ptr<asio::steady_timer> timer) { co_await timer->async_wait(kAsTuple); }
}  // namespace

Condition::Condition(Executor executor) : state_(std::make_shared<State>(std::move(executor))) {}
Condition::~Condition() { notify_all(); }
Task<> Condition::wait() {
  return wait_on(std::shared_ptr<asio::steady_timer>(state_, &state_->timer));
}
void Condition::notify_all() { state_->timer.cancel(); }

struct TaskGroup::State {
  explicit State(Executor executor) : executor(executor), emptied(executor) {}
  Executor executor;
  std::list<asio::cancellation_signal> running;
  Condition emptied;
};

TaskGroup::TaskGroup(Executor executor) : state_(std::make_shared<State>(std::move(executor))) {}
TaskGroup::~TaskGroup() { cancel(); }

void TaskGroup::spawn(Task<> task) {
  const auto entry = state_->running.emplace(state_->running.end());
  auto done = [state = state_, entry](std::exception_ptr thrown) {
    // Not here: the signal may be the one that is being emitted.
    asio::post(state->executor, [state, entry] {
      state->running.erase(entry);
      if (state->running.empty()) state->emptied.notify_all();
    });
    if (thrown && !is_cancellation(thrown)) std::rethrow_exception(thrown);
  };
  asio::co_spawn(state_->executor, std::move(task),
                 asio::bind_cancellation_slot(entry->slot(), std::move(done)));
}

void TaskGroup::cancel() {
  for (auto& signal : state_->running) signal.emit(asio::cancellation_type::terminal);
}

Task<> TaskGroup::wait() {
  const auto state = state_;
  while (!state->running.empty()) co_await state->emptied.wait();
}

std::size_t TaskGroup::size() const { return state_->running.size(); }

}  // namespace aio
