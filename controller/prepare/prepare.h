#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "controller/prepare/executor_door.h"
#include "controller/prepare/executor_files.h"
#include "libs/base/clock.h"
#include "libs/envd/sandbox.h"
#include "libs/wire/admin.h"

namespace controller {

inline constexpr char kExecutorPath[] = "/opt/sandfleet/bin/sandfleet-executor";
inline constexpr char kRuntimeFolder[] = "/var/lib/sandfleet";
inline constexpr char kLogFile[] = "/var/lib/sandfleet/executor.log";

struct PrepareOptions {
  const base::Clock& clock;
  // Waits, so that a test need not.
  std::function<void(base::Milliseconds)> rest;
  // One of ours was at work there when last heard of: it is asked before anything is started.
  bool expected = false;
  // Hears the name of each step as it begins.
  std::function<void(std::string_view step)> on_step = [](std::string_view) {};
  // From the executor's keys to its first answer, however long each ask takes; one that is on its
  // way then may still bring it. So long it may also take to say that it waits for them.
  base::Milliseconds answer_within{15'000};
  // The first pause between asks, and the longest: for one that was not heard to serve, as it told
  // somebody else.
  base::Milliseconds ask_first{2}, ask_every{250};
};

// Brings our executor to life inside one sandbox: the right binary and the private runtime folder
// are there, it runs as the default user in its own control group where there is cgroup2, and
// answers. Every step may be repeated, whatever an earlier try left behind.
//   start it (user)  -> it says "waiting" -> lay out (root) -> its keys -> it says "serving" -> ask
base::Result<wire::Health> bring_to_life(envd::Sandbox& sandbox, ExecutorDoor& door,
                                         const ExecutorFiles& executors,
                                         const wire::StartSecrets& secrets, bool replace,
                                         const PrepareOptions& options, std::stop_token stop);

}  // namespace controller
