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
//   notes       what write() has it say is kept for whoever reads or attaches, until finish()
//   sh          the same in a terminal, which shows what is typed, and ends at an x with 9
class ScriptedProcesses : public wire::Service {
 public:
  void handle(wire::SessionHost& host, wire::HostEvent event) override;
  void work(wire::SessionHost& host) override;

  // By Server::with.
  void add(const std::string& handle, const std::string& command);  // As another would spawn it.
  void add_detached(const std::string& handle, const std::string& command);
  void write(const std::string& handle, const std::string& text);
  void keep_from(const std::string& handle, std::int64_t offset);  // What is before is gone.
  // Whenever it is read, so often, it has just written so many more lines, which are numbered, and
  // only its last bytes are kept.
  struct Rush {
    int lines = 0;
    std::int64_t kept_bytes = 0;
    int times = 0;
  };
  void rush(const std::string& handle, const Rush& rush) { processes_[handle].rush = rush; }
  void finish(const std::string& handle, std::int64_t code);
  void take_over(const std::string& handle) { processes_[handle].taken = true; }  // By another.
  void be_silent(bool silent) { silent_ = silent; }     // Nothing is read or said.
  void hold_spawns(bool hold) { hold_spawns_ = hold; }  // They are answered afterwards.
  // Signals, terminations, cancellations, sizes ("50x200") and looks.
  const std::vector<std::string>& heard() const { return heard_; }
  const std::string& said(const std::string& handle) { return processes_[handle].said; }
  const std::optional<wire::ReadOutputArgs>& last_reading() const { return last_reading_; }
  int readings() const { return readings_; }
  const wire::Request* last_spawn() const { return spawn_ ? &*spawn_ : nullptr; }
  int sessions_ended() const { return sessions_ended_; }

 private:
  struct Process {
    std::string session;
    wire::SpawnArgs args;
    std::int64_t left = 0;  // To be said.
    wire::ProcessState state = {.pid = 7};
    bool outputs_ended = false;
    // Of those that keep what they say.
    std::string said = {};
    std::int64_t kept_from = 0, sent = 0;
    std::uint32_t in = 0, out = 0;
    bool taken = false;
    Rush rush = {};
    int lines = 0;  // So far.
  };
  struct Held {
    std::string session;
    wire::Request request;
  };
  struct Waiting {
    std::string session;
    std::uint32_t id = 0;
    std::string handle;
    bool looks = false;  // And waits for nothing.
  };
  struct Reading {
    std::string session;
    std::uint32_t id = 0;
    wire::ReadOutputArgs args;
  };

  void spawn(wire::ServedSession& session, const std::string& name, const wire::Request& request);
  void signal(wire::ServedSession& session, const wire::Request& request);
  void terminate(wire::ServedSession& session, const wire::Request& request);
  void list(wire::ServedSession& session, const wire::Request& request);
  void attach(wire::ServedSession& session, const std::string& name, const wire::Request& request);
  void resize(wire::ServedSession& session, const wire::Request& request);
  bool answer(wire::ServedSession& session, const Reading& reading);
  static void carry(wire::ServedSession& session, Process& process);
  static void play(wire::ServedSession& session, Process& process);
  static void write_on(Process& process);
  static void exit(Process& process, std::int64_t code);
  static void die(Process& process, const std::string& signal);

  std::map<std::string, Process> processes_;
  std::vector<Waiting> waiting_;
  std::vector<Reading> reading_;
  std::vector<Held> held_;
  bool silent_ = false, hold_spawns_ = false;
  std::vector<std::string> heard_;
  std::optional<wire::Request> spawn_;
  std::optional<wire::ReadOutputArgs> last_reading_;
  int readings_ = 0;
  int sessions_ended_ = 0;
};

}  // namespace cli
