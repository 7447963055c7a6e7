#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "libs/aio/loop.h"
#include "libs/wire/frames/message.h"
#include "libs/wire/web/web_links.h"

namespace executor {

// What a request that is at work waits for, and how it is told to give up.
struct Progress {
  explicit Progress(aio::Executor executor) : moved(executor), given_up(std::move(executor)) {}
  void give_up() {
    stop.request_stop();
    given_up.notify_all();
    moved.notify_all();
  }
  aio::Condition moved;  // Something came in, or there is room for more, or it was given up.
  aio::Condition given_up;
  std::stop_source stop;
};

// One request, for the coroutine that serves it. Sessions may end meanwhile: what is said then goes
// nowhere.
class Call {
 public:
  Call(wire::WebLinks& links, std::string session, wire::Request request,
       std::shared_ptr<Progress> progress)
      : links_(links),
        session_(std::move(session)),
        request_(std::move(request)),
        progress_(std::move(progress)) {}

  const std::string& session() const { return session_; }
  const wire::Request& request() const { return request_; }
  std::stop_token stop() const { return progress_->stop.get_token(); }
  bool given_up() const { return progress_->stop.stop_requested(); }  // Or its session has ended.

  // False: there is no room for such a reply, and the request has failed for that.
  bool reserve(std::size_t reply_bytes);
  template <typename Ok>
  void reply(const Ok& ok) {
    if (auto* served = links_.session(session_)) served->reply(request_.id, wire::to_json(ok));
    links_.wake();
  }
  template <typename Ok>
  void reply_whole(const Ok& ok, std::string_view download) {
    if (auto* served = links_.session(session_))
      served->reply_whole(request_.id, wire::to_json(ok), download);
    links_.wake();
  }
  void fail(wire::Failure failure);

  // Its own download and upload. `append` waits for room: false when nobody wants it any more.
  aio::Task<bool> append(std::string bytes);
  void end(std::optional<wire::Failure> error = std::nullopt);
  aio::Task<> until_unwanted();  // Nobody reads its download any more, or it was given up.
  aio::Task<> until_given_up();
  // The next piece that came in; nothing when it was given up, or has broken off.
  aio::Task<std::optional<wire::Piece>> take();
  // What is there already; one that has broken off ends with its error.
  std::optional<wire::Piece> take_ready();

 private:
  wire::WebLinks& links_;
  std::string session_;
  wire::Request request_;
  std::shared_ptr<Progress> progress_;
};

}  // namespace executor
