#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "executor/admin/admin.h"
#include "executor/envd/rpc.h"
#include "libs/aio/http_server.h"
#include "libs/aio/loop.h"
#include "libs/aio/task.h"
#include "libs/base/clock.h"
#include "libs/wire/admin.h"

namespace executor {

// Envd and executor of many sandboxes at once, in which nothing runs, so that whoever drives
// sandboxes can be measured without the cost of sandboxes. On envd's side it takes the calls that
// bring an executor to life and answers them as a real sandbox does; the executor that is started
// is one more Admin in this process, with the keys that it was given and an identity and a quiesce
// of its own. One loop's state, no lock.
//   envd:      GET /health | POST /init | Start | SendInput | SendSignal
//   executors: token -> the Admin of that uid and epoch
class StandIn {
 public:
  // Of which the one that was started first is forgotten for a newcomer, as if it had ended.
  static constexpr std::size_t kExecutorsMax = 131'072;

  StandIn(aio::Executor executor, const base::Clock& clock,
          std::size_t executors_max = kExecutorsMax)
      : executor_(std::move(executor)), clock_(clock), executors_max_(executors_max) {}

  aio::Task<> serve_envd(std::shared_ptr<aio::HttpExchange> exchange);
  aio::Task<> serve_executors(std::shared_ptr<aio::HttpExchange> exchange);
  // Lets quiesces lapse; run beside the servers.
  aio::Task<> watch_the_clock();

 private:
  using Exchange = std::shared_ptr<aio::HttpExchange>;
  using World = std::pair<std::string, std::int64_t>;  // uid and epoch
  struct Started {
    std::string admin_key;
    std::shared_ptr<Admin> admin;
  };
  // What was written to a process that waits for a line.
  struct Input {
    explicit Input(aio::Executor executor) : came(std::move(executor)) {}
    std::string bytes;
    aio::Condition came;
  };
  using Waiting = std::map<std::uint32_t, std::shared_ptr<Input>>;  // By pid.
  enum class Then { kEnds, kGoesOn };

  aio::Task<> start(Exchange exchange);
  aio::Task<> play(Exchange exchange, base::Json message, Then& then);
  aio::Task<> play_executor(RpcReplies& replies, std::uint32_t pid, Then& then);
  aio::Task<> send_input(Exchange exchange);
  static aio::Task<std::string> line_of(std::shared_ptr<Input> input);
  bool admit(const wire::StartSecrets& secrets);

  const aio::Executor executor_;
  const base::Clock& clock_;
  const std::size_t executors_max_;
  std::uint32_t next_pid_ = 2;
  // Shared with starts that may be dropped with the loop, after this.
  const std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
  std::map<World, Started> executors_;
  std::deque<World> order_;  // Of their first start.
};

}  // namespace executor
