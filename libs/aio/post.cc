#include "libs/aio/post.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace aio {

void post(const Executor& executor, std::function<void()> work) {
  boost::asio::post(executor, std::move(work));
}

}  // namespace aio
