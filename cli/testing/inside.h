#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/signalfd.h>

#include <array>
#include <csignal>
#include <future>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/inside/inside.h"
#include "cli/testing/scripted_processes.h"
#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"

// The verbs that reach into a sandbox, before the serving side of sessions.
namespace cli {

inline std::pair<base::Fd, base::Fd> new_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return {base::Fd(ends[0]), base::Fd(ends[1])};
}

// A person at a terminal whose standard streams are a file and pipes.
class Inside : public testing::Test {
 protected:
  Inside() {
    ::signal(SIGPIPE, SIG_IGN);
    out_ = base::Fd(::open((folder_ / "out").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    err_ = base::Fd(::open((folder_ / "err").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    around_.socket = folder_ / "agentd.sock";
  }

  int run(const std::vector<std::string>& typed) {
    Options options;
    base::Flags flags("sandfleet", kAbout);
    declare(flags, options, [&](const Verb& verb) { return run(verb, options); });
    const auto [line, command] = split_line(typed);
    options.command = command;
    std::vector<const char*> words = {"sandfleet"};
    for (const auto& word : line) words.push_back(word.c_str());
    return flags.parse(static_cast<int>(words.size()), words.data()).value_or(-1);
  }
  int run(const Verb& verb, const Options& options) {
    const Terminal terminal{told_, warned_, no_input_, clock_};
    auto settings = connection_for(verb, options, around_, {});
    if (!settings) return refuse(verb, options, settings.error(), warned_);
    settings->credential = [this] { return base::Result<wire::Credential>(server_.credential()); };
    settings->session.lease_seconds = lease_seconds_;
    wire::Connection connection(*settings, clock_);
    const Ends ends{.in = in(),
                    .out = out_.get(),
                    .err = err_.get(),
                    .signals = signals_.first.get(),
                    .watched = true};
    return run_inside(verb, options, connection, ends, terminal);
  }
  std::future<int> begin(std::vector<std::string> typed) {
    return std::async(std::launch::async, [this, typed = std::move(typed)] { return run(typed); });
  }
  void send(int number) {
    signalfd_siginfo signal{};
    signal.ssi_signo = static_cast<std::uint32_t>(number);
    EXPECT_EQ(::write(signals_.second.get(), &signal, sizeof signal),
              static_cast<ssize_t>(sizeof signal));
  }
  std::string shown() { return *base::read_file(folder_ / "out"); }
  // What is served, by who serves it.
  template <typename Use>
  void with(Use use) {
    server_.with([&](wire::SessionHost&) { use(processes_); });
  }
  std::vector<std::string> heard() {
    std::vector<std::string> heard;
    with([&](ScriptedProcesses& processes) { heard = processes.heard(); });
    return heard;
  }
  bool spawned() {
    bool is = false;
    with([&](ScriptedProcesses& processes) { is = processes.last_spawn() != nullptr; });
    return is;
  }
  // Whoever was let in before is let in no more.
  void become_another() {
    server_.with([this](wire::SessionHost& host) {
      host.resumed({.uid = "another", .epoch = 1}, {clock_.now(), clock_.wall()});
    });
  }
  virtual int in() const { return in_.first.get(); }

  base::SystemClock clock_;
  base::TemporaryFolder folder_;
  ScriptedProcesses processes_;
  wire::Server server_{folder_ / "agentd.sock", processes_};
  Surroundings around_{.state = "/state", .sandbox = "team/box"};
  std::pair<base::Fd, base::Fd> in_ = new_pipe(), signals_ = new_pipe();
  base::Fd out_, err_;
  std::int64_t lease_seconds_ = 300;
  std::ostringstream told_, warned_;
  std::istringstream no_input_;
};

}  // namespace cli
