#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "executor/process/groups.h"
#include "executor/process/process.h"
#include "libs/aio/loop.h"
#include "libs/base/result.h"

namespace executor {

// What was asked for, as it was asked.
struct Command {
  std::string program;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;
  std::optional<std::string> cwd;
  std::optional<std::string> tag;
};

struct Started {
  Command command;
  std::shared_ptr<Process> process;
};

// A process and its first listener, who misses nothing.
struct Begun {
  std::shared_ptr<Process> process;
  std::shared_ptr<Fanout::Subscriber> subscriber;
};

using Selector = std::variant<std::uint32_t, std::string>;  // A pid, or a tag.

// All commands of this executor: those that run, and for kEndKept those that ended.
class Processes {
 public:
  static constexpr std::size_t kRunningMax = 2048;
  static constexpr std::size_t kEndedMax = 256;
  static constexpr base::Milliseconds kEndKept{30'000};

  // How long the groups that ended commands made themselves stay without a process, and how often
  // that is looked at.
  struct GroupCare {
    base::Milliseconds kept{300'000}, look_every{60'000};
  };

  Processes(aio::Executor executor, std::optional<Groups> groups)
      : Processes(executor, std::move(groups), GroupCare{}) {}
  Processes(aio::Executor executor, std::optional<Groups> groups, GroupCare care);

  // `launch` is complete but for its group. With a lifetime, the whole tree is killed when that
  // has passed, whoever still listens.
  base::Result<Begun> start(Command command, Launch launch,
                            std::optional<base::Milliseconds> lifetime);
  std::vector<Started> running() const;
  // The newest that fits; a running one before one that has ended.
  std::shared_ptr<Process> find(const Selector& selector) const;

 private:
  aio::Task<> tend_groups(GroupCare care);
  aio::Task<> look_after(std::shared_ptr<Process> process);
  aio::Task<> end_in_time(std::weak_ptr<Process> process, base::Milliseconds lifetime);
  void forget_surplus();

  aio::Executor executor_;
  std::optional<Groups> groups_;
  std::list<Started> started_;  // Newest first.
  aio::TaskGroup tasks_;
};

}  // namespace executor
