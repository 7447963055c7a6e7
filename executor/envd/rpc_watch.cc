#include <cerrno>

#include "executor/envd/proto_json.h"
#include "executor/envd/rpc.h"
#include "executor/files/entry.h"
#include "libs/base/crypto.h"

namespace executor {
namespace {

std::string_view change_word(Change change) {
  switch (change) {
    case Change::kCreated:
      return "EVENT_TYPE_CREATE";
    case Change::kWritten:
      return "EVENT_TYPE_WRITE";
    case Change::kRemoved:
      return "EVENT_TYPE_REMOVE";
    case Change::kRenamed:
      return "EVENT_TYPE_RENAME";
    case Change::kMode:
      return "EVENT_TYPE_CHMOD";
  }
  return {};
}

RpcError lost_events(std::size_t count) {
  return {RpcCode::kResourceExhausted,
          std::to_string(count) +
              " or more events were dropped, because nobody took them; list the folder again"};
}

struct WatchAsk {
  std::shared_ptr<Watch> watch;
  bool with_entry = false;
};

aio::Task<RpcResult<WatchAsk>> begin_watch(const RpcCall& call) {
  const Message message(call.message);
  CO_TRY(const std::string path, path_at(call, "path"));
  CO_TRY(const auto recursive, message.boolean("recursive"));
  CO_TRY(const auto with_entry, message.boolean("includeEntry"));
  CO_TRY(const auto allow_network, message.boolean("allowNetworkMounts"));
  auto work = [path, recursive = recursive.value_or(false),
               allow_network = allow_network.value_or(false)] {
    return Watch::Folders::find(path, recursive, allow_network);
  };
  auto folders = co_await call.daemon->background.run(std::move(work));
  if (!folders) co_return rpc_error(folders.error());
  auto watch = std::make_shared<Watch>(call.daemon->executor, *std::move(folders));
  call.daemon->watches.spawn(Watch::run(watch));
  co_return WatchAsk{std::move(watch), with_entry.value_or(false)};
}

// Stops the watch however its stream ends.
struct Stopped {
  std::shared_ptr<Watch> watch;
  ~Stopped() { watch->stop(); }
};

// All events that the watch holds; what they happened to is looked at off the loop.
aio::Task<RpcResult<std::vector<base::Json>>> take_events(std::shared_ptr<Daemon> daemon,
                                                          WatchAsk ask) {
  auto work = [daemon, ask, events = ask.watch->take()]() -> base::Result<std::vector<base::Json>> {
    std::vector<base::Json> told;
    for (const WatchEvent& event : events) {
      base::Json json = {{"name", event.name}, {"type", change_word(event.change)}};
      if (ask.with_entry)
        if (const auto entry = stat_entry(ask.watch->folder() + "/" + event.name, daemon->users))
          json["entry"] = to_json(*entry);
      told.push_back(std::move(json));
    }
    return told;
  };
  auto told = co_await daemon->background.run(std::move(work));
  if (!told) co_return RpcError(told.error());
  co_return *std::move(told);
}

// False once nobody listens.
aio::Task<RpcResult<bool>> send_events(RpcReplies& replies, std::shared_ptr<Daemon> daemon,
                                       WatchAsk ask) {
  CO_TRY(auto events, co_await take_events(std::move(daemon), std::move(ask)));
  for (base::Json& event : events) {
    base::Json message = {{"filesystem", std::move(event)}};
    const auto sent = co_await replies.send(std::move(message));
    if (!sent) co_return false;
  }
  co_return true;
}

}  // namespace

aio::Task<RpcResult<base::Done>> rpc_watch_dir(RpcCall call, RpcReplies& replies) {
  CO_TRY(const WatchAsk ask, co_await begin_watch(call));
  const Stopped stopped{ask.watch};
  base::Json start = {{"start", base::Json::object()}};
  auto sent = co_await replies.send(std::move(start));
  base::Moment quiet_since = base::SystemClock().now();
  while (sent && !ask.watch->stopped()) {
    const base::Moment ping_at = quiet_since + call.keepalive;
    const base::Moment wake_at = call.deadline ? std::min(ping_at, *call.deadline) : ping_at;
    co_await aio::race(ask.watch->wait(), aio::sleep_until(wake_at));
    const base::Moment now = base::SystemClock().now();
    if (call.deadline && now >= *call.deadline)
      co_return RpcError(RpcCode::kDeadlineExceeded, "the deadline of the call has passed");
    if (const std::size_t lost = ask.watch->take_lost()) co_return lost_events(lost);
    CO_TRY(const bool all_sent, co_await send_events(replies, call.daemon, ask));
    if (!all_sent) break;
    if (now >= ping_at) {
      base::Json ping = {{"keepalive", base::Json::object()}};
      sent = co_await replies.send(std::move(ping));
    }
    quiet_since = now >= ping_at ? now : quiet_since;
  }
  co_return base::Done{};
}

aio::Task<RpcResult<base::Json>> rpc_create_watcher(RpcCall call) {
  Daemon& daemon = *call.daemon;
  if (daemon.watchers.size() >= Daemon::kWatchersMax)
    co_return RpcError(RpcCode::kResourceExhausted, "there are already " +
                                                        std::to_string(Daemon::kWatchersMax) +
                                                        " watchers; remove some first");
  CO_TRY(const WatchAsk ask, co_await begin_watch(call));
  // Whether entries are wanted is asked again with each poll, so it is part of the name.
  const std::string id = (ask.with_entry ? "we" : "w") + base::random_hex(12);
  daemon.watchers[id] = ask.watch;
  co_return base::Json{{"watcherId", id}};
}

aio::Task<RpcResult<base::Json>> rpc_get_watcher_events(RpcCall call) {
  CO_TRY(const auto id, Message(call.message).text("watcherId"));
  const auto found = call.daemon->watchers.find(id.value_or(""));
  if (found == call.daemon->watchers.end())
    co_return RpcError(RpcCode::kNotFound, "no such watcher: " + id.value_or(""));
  WatchAsk ask{found->second, id->starts_with("we")};
  if (const std::size_t lost = ask.watch->take_lost()) {
    static_cast<void>(ask.watch->take());
    co_return lost_events(lost);
  }
  CO_TRY(auto events, co_await take_events(call.daemon, std::move(ask)));
  base::Json reply = base::Json::object();
  if (!events.empty()) reply["events"] = std::move(events);
  co_return reply;
}

aio::Task<RpcResult<base::Json>> rpc_remove_watcher(RpcCall call) {
  CO_TRY(const auto id, Message(call.message).text("watcherId"));
  const auto found = call.daemon->watchers.find(id.value_or(""));
  if (found == call.daemon->watchers.end())
    co_return RpcError(RpcCode::kNotFound, "no such watcher: " + id.value_or(""));
  found->second->stop();
  call.daemon->watchers.erase(found);
  co_return base::Json::object();
}

}  // namespace executor
