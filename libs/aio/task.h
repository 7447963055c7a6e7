#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

namespace aio {

// A coroutine on this process's one event loop. Destroying or cancelling it cancels what it awaits.
template <typename T = void>
using Task = boost::asio::awaitable<T>;

using Executor = boost::asio::any_io_executor;

}  // namespace aio
