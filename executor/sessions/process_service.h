#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "executor/confine/permission.h"
#include "executor/sessions/call.h"
#include "executor/sessions/process_streams.h"
#include "executor/subprocess/subprocesses.h"
#include "libs/aio/task.h"
#include "libs/wire/web/web_links.h"

namespace executor {

// The operations on processes of docs/protocol.md, each a coroutine that ends with the request's
// reply, its failure or its download's end. What a process's streams carry goes on beside.
class ProcessService {
 public:
  // What the downloads and uploads of calls hold together; beyond it they are refused as busy.
  static constexpr std::size_t kHeldBytesMax = 64u << 20;

  // `cwd`: of calls that name none.
  ProcessService(Subprocesses& processes, wire::WebLinks& links, const aio::Executor& executor,
                 std::string cwd)
      : processes_(processes), cwd_(std::move(cwd)), streams_(executor, links) {}

  // Nothing when it is no operation on processes; else what serves it. `permission`: the caller's.
  std::optional<aio::Task<>> serve(const std::shared_ptr<Call>& call, Permission permission);
  // There is news of a stream of a session; the session is gone.
  void move(const std::string& session, std::uint32_t stream) { streams_.move({session, stream}); }
  void end(const std::string& session) { streams_.end(session); }

 private:
  Subprocesses& processes_;
  std::string cwd_;
  std::shared_ptr<std::size_t> held_ = std::make_shared<std::size_t>(0);
  ProcessStreams streams_;
};

}  // namespace executor
