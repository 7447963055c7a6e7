#include "executor/process/fanout.h"

#include <sys/wait.h>

#include <cstring>

namespace executor {
namespace {

base::Moment now() { return base::SystemClock().now(); }

// The words that Go's os/exec uses, which clients of this protocol look for.
std::string signal_word(int number) {
  switch (number) {
    case SIGHUP:
      return "hangup";
    case SIGINT:
      return "interrupt";
    case SIGQUIT:
      return "quit";
    case SIGABRT:
      return "aborted";
    case SIGKILL:
      return "killed";
    case SIGSEGV:
      return "segmentation fault";
    case SIGPIPE:
      return "broken pipe";
    case SIGTERM:
      return "terminated";
    default:
      return "signal " + std::to_string(number);
  }
}

}  // namespace

End describe_end(int wait_status) {
  End end;
  if (WIFEXITED(wait_status)) {
    end.exit_code = WEXITSTATUS(wait_status);
    end.exited = true;
    end.status = "exit status " + std::to_string(end.exit_code);
  } else {
    end.exit_code = -1;
    end.status = "signal: " + signal_word(WTERMSIG(wait_status));
    if (WCOREDUMP(wait_status)) end.status += " (core dumped)";
  }
  if (end.exit_code != 0) end.error = end.status;
  return end;
}

void Fanout::Subscriber::put(ProcessEvent event) {
  if (const auto* output = std::get_if<Output>(&event)) held_bytes_ += output->bytes.size();
  held_.push_back(std::move(event));
  arrived_.notify_all();
}

void Fanout::Subscriber::leave() {
  left_ = true;
  if (changed_) changed_->notify_all();
}

aio::Task<std::optional<ProcessEvent>> Fanout::Subscriber::next() {
  while (held_.empty()) {
    if (ended_ || cut_off_) co_return std::nullopt;
    co_await arrived_.wait();
  }
  ProcessEvent event = std::move(held_.front());
  held_.pop_front();
  if (const auto* output = std::get_if<Output>(&event)) held_bytes_ -= output->bytes.size();
  if (changed_) changed_->notify_all();
  co_return event;
}

Fanout::Fanout(aio::Executor executor)
    : executor_(executor), changed_(std::make_shared<aio::Condition>(executor)) {}

std::shared_ptr<Fanout::Subscriber> Fanout::subscribe() {
  auto subscriber = std::make_shared<Subscriber>(executor_);
  subscriber->changed_ = changed_;
  if (end_) {
    subscriber->put(*end_);
    subscriber->ended_ = true;
  } else {
    subscribers_.push_back(subscriber);
  }
  return subscriber;
}

// Drops those who left and cuts off those who stall others; false while somebody has no room.
bool Fanout::make_room(base::Moment now) {
  subscribers_.remove_if([](const std::weak_ptr<Subscriber>& weak) {
    const auto subscriber = weak.lock();
    return !subscriber || subscriber->left_;
  });
  bool somebody_waits = false;
  for (const auto& weak : subscribers_) somebody_waits |= weak.lock()->has_room();
  bool room = true;
  for (auto at = subscribers_.begin(); at != subscribers_.end();) {
    const auto subscriber = at->lock();
    if (subscriber->has_room()) {
      subscriber->full_since_.reset();
    } else {
      if (!subscriber->full_since_ || !somebody_waits) subscriber->full_since_ = now;
      if (now - *subscriber->full_since_ >= kPatience) {
        subscriber->cut_off_ = true;
        subscriber->arrived_.notify_all();
        at = subscribers_.erase(at);
        continue;
      }
      room = false;
    }
    ++at;
  }
  return room;
}

aio::Task<> Fanout::publish(Output output) {
  while (!end_ && !make_room(now())) {
    // The limit is for those who stall others; nobody tells when their patience ends.
    co_await aio::race(changed_->wait(), aio::sleep_for(kPatience / 4));
  }
  if (end_) co_return;
  for (const auto& weak : subscribers_)
    if (const auto subscriber = weak.lock()) subscriber->put(output);
}

void Fanout::finish(const End& end) {
  end_ = end;
  for (const auto& weak : subscribers_) {
    const auto subscriber = weak.lock();
    if (!subscriber) continue;
    subscriber->put(end);
    subscriber->ended_ = true;
  }
  subscribers_.clear();
  changed_->notify_all();
}

}  // namespace executor
