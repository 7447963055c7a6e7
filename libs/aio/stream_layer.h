#pragma once

#include <algorithm>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/beast/core/async_base.hpp>
#include <boost/beast/core/bind_handler.hpp>
#include <boost/beast/core/role.hpp>
#include <memory>
#include <string>
#include <utility>

#include "libs/aio/stream.h"

namespace aio {

// Any Stream as what Beast's asynchronous calls work on (AsyncStream). Private to libs/aio.
class StreamLayer {
 public:
  using executor_type = Executor;

  StreamLayer(Executor executor, std::shared_ptr<Stream> stream)
      : executor_(std::move(executor)), stream_(std::move(stream)) {}

  executor_type get_executor() const { return executor_; }
  void close(boost::system::error_code&) { stream_->close(); }

  template <typename Buffers, typename Token>
  BOOST_BEAST_ASYNC_RESULT2(Token)
  async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, Signature>(Begin{executor_}, token,
                                                         take(stream_, room_in(buffers)));
  }

  // Pieces that belong together go together: each is a record where there are records.
  template <typename Buffers, typename Token>
  BOOST_BEAST_ASYNC_RESULT2(Token)
  async_write_some(const Buffers& buffers, Token&& token) {
    std::string bytes(std::min(boost::asio::buffer_size(buffers), kPieceBytes), '\0');
    boost::asio::buffer_copy(boost::asio::buffer(bytes), buffers);
    return boost::asio::async_initiate<Token, Signature>(Begin{executor_}, token,
                                                         put(stream_, std::move(bytes)));
  }

  friend void beast_close_socket(StreamLayer& layer) { layer.stream_->close(); }
  template <typename Handler>
  friend void async_teardown(boost::beast::role_type, StreamLayer& layer, Handler&& handler) {
    layer.stream_->close_write();
    boost::asio::post(layer.executor_, boost::beast::bind_handler(std::forward<Handler>(handler),
                                                                  boost::system::error_code()));
  }

 private:
  using Signature = void(boost::system::error_code, std::size_t);
  static constexpr std::size_t kPieceBytes = 16u << 10;

  struct Moved {
    boost::system::error_code failed;
    std::size_t bytes = 0;
  };

  // Runs a task, and hands what it moved to the handler.
  struct Begin {
    Executor executor;
    template <typename Handler>
    void operator()(Handler&& handler, Task<Moved> task) const {
      const auto slot = boost::asio::get_associated_cancellation_slot(handler);
      auto done = [handler = std::forward<Handler>(handler)](std::exception_ptr thrown,
                                                             Moved moved) mutable {
        if (thrown) moved.failed = boost::asio::error::operation_aborted;
        std::move(handler)(moved.failed, moved.bytes);
      };
      boost::asio::co_spawn(executor, std::move(task),
                            boost::asio::bind_cancellation_slot(slot, std::move(done)));
    }
  };

  template <typename Buffers>
  static boost::asio::mutable_buffer room_in(const Buffers& buffers) {
    const auto end = boost::asio::buffer_sequence_end(buffers);
    for (auto each = boost::asio::buffer_sequence_begin(buffers); each != end; ++each)
      if (boost::asio::mutable_buffer(*each).size() > 0) return *each;
    return {};
  }

  static boost::system::error_code code_of(const base::Error& error) {
    if (error.code == base::ErrorCode::kCancelled) return boost::asio::error::operation_aborted;
    return boost::asio::error::connection_reset;
  }
  static Task<Moved> take(std::shared_ptr<Stream> stream, boost::asio::mutable_buffer room) {
    if (room.size() == 0) co_return Moved{};
    const auto got = co_await stream->read(static_cast<char*>(room.data()), room.size());
    if (!got) co_return Moved{code_of(got.error())};
    if (*got == 0) co_return Moved{boost::asio::error::eof};
    co_return Moved{{}, *got};
  }
  static Task<Moved> put(std::shared_ptr<Stream> stream, std::string bytes) {
    const auto wrote = co_await stream->write(bytes);
    if (!wrote) co_return Moved{code_of(wrote.error())};
    co_return Moved{{}, bytes.size()};
  }

  Executor executor_;
  std::shared_ptr<Stream> stream_;
};

}  // namespace aio
