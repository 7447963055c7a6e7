#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libs/wire/client/testing/server.h"
#include "libs/wire/frames/process_operations.h"

namespace cli {

// What an executor answers about processes, for commands that are not run but played:
//   say COUNT   writes as many x to stdout and "said" to stderr, and exits with 0
//   cat         gives back what it reads
//   code N      exits with N
//   hang        until a signal comes, of which it dies
//   stubborn    minds only to be terminated
//   fleeting    the same, and is forgotten as soon as it has been
//   missing     cannot be started
class ScriptedProcesses : public wire::Service {
 public:
  void handle(wire::SessionHost& host, wire::HostEvent event) override;
  void work(wire::SessionHost& host) override;

  // By Server::with.
  void add(const std::string& handle, const std::string& command);  // As another would spawn it.
  const std::vector<std::string>& heard() const { return heard_; }  // Signals, terminations.
  const wire::Request* last_spawn() const { return spawn_ ? &*spawn_ : nullptr; }
  int sessions_ended() const { return sessions_ended_; }

 private:
  struct Process {
    std::string session;
    wire::SpawnArgs args;
    std::int64_t left = 0;  // To be said.
    wire::ProcessState state = {.pid = 7};
    bool outputs_ended = false;
  };
  struct Waiting {
    std::string session;
    std::uint32_t id = 0;
    std::string handle;
    wire::WaitUntil until = wire::WaitUntil::kExit;
  };

  void spawn(wire::ServedSession& session, const std::string& name, const wire::Request& request);
  void signal(wire::ServedSession& session, const wire::Request& request);
  void terminate(wire::ServedSession& session, const wire::Request& request);
  void list(wire::ServedSession& session, const wire::Request& request);
  static void play(wire::ServedSession& session, Process& process);
  static void exit(Process& process, std::int64_t code);
  static void die(Process& process, const std::string& signal);

  std::map<std::string, Process> processes_;
  std::vector<Waiting> waiting_;
  std::vector<std::string> heard_;
  std::optional<wire::Request> spawn_;
  int sessions_ended_ = 0;
};

}  // namespace cli
