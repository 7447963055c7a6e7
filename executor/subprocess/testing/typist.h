#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/subprocess/testing/site.h"

// Somebody at a terminal.
namespace executor::testing {

inline constexpr TerminalSize kTypistsSize{.columns = 160, .rows = 40};

inline SpawnRequest in_terminal(Site& site, std::vector<std::string> argv) {
  SpawnRequest request = site.request(std::move(argv));
  request.stdin_mode = Piped{};
  request.stdout_mode = Collect{kScrollbackBytesMax};
  request.stderr_mode = Ignored{};
  request.terminal = kTypistsSize;
  request.env.emplace_back("TERM", "dumb");
  return request;
}

// A shell for people, with nobody's settings and a prompt that is like nothing else.
inline constexpr std::string_view kPrompt = "ready> ";
inline SpawnRequest shell_in_terminal(Site& site) {
  SpawnRequest request = in_terminal(site, {"bash", "--noprofile", "--norc", "-i"});
  request.env.emplace_back("PS1", kPrompt);
  request.env.emplace_back("HISTFILE", std::nullopt);
  return request;
}

class Typist {
 public:
  Typist(Site& site, std::shared_ptr<Subprocess> process)
      : site_(site), process_(std::move(process)) {}

  Subprocess& process() const { return *process_; }
  void type(std::string_view text) const {
    const auto put = process_->input()->put(process_->input()->arrived(), text);
    EXPECT_TRUE(put) << (put ? "" : put.error().message);
  }
  void enter(const std::string& line) const { type(line + "\n"); }

  // Until `text` was shown, after what was waited for before.
  aio::Task<> see(std::string text) {
    for (;;) {
      const std::string shown = process_->out()->read(0, kScrollbackBytesMax)->bytes;
      if (const auto at = shown.find(text, seen_); at != std::string::npos) {
        seen_ = at + text.size();
        co_return;
      }
      if (process_->out()->ended()) {
        ADD_FAILURE() << "it ended without '" << text << "' after: " << shown.substr(seen_);
        co_return;
      }
      co_await process_->out()->wait_for(static_cast<std::int64_t>(shown.size()));
    }
  }
  std::string shown() const { return process_->out()->read(0, kScrollbackBytesMax)->bytes; }

  aio::Task<std::optional<Foreground>> foreground() const {
    const auto found = co_await process_->foreground(site_.background);
    EXPECT_TRUE(found) << (found ? "" : found.error().message);
    co_return found ? *found : std::nullopt;
  }
  // Until the one in the foreground waits, or does not. ctest ends who waits for ever.
  aio::Task<pid_t> until(InputWaiting waiting) const {
    for (;;) {
      const auto found = co_await foreground();
      if (found && found->waiting == waiting) co_return found->group;
      if (!found) co_return 0;
      co_await aio::sleep_for(base::Milliseconds(2));
    }
  }
  // Until another than the command is in the foreground: its group.
  aio::Task<pid_t> until_a_job() const {
    for (;;) {
      const auto found = co_await foreground();
      if (!found) co_return 0;
      if (found->group != process_->state().pid) co_return found->group;
      co_await aio::sleep_for(base::Milliseconds(2));
    }
  }

 private:
  Site& site_;
  std::shared_ptr<Subprocess> process_;
  std::size_t seen_ = 0;
};

// At the first prompt of a shell.
inline aio::Task<std::optional<Typist>> sit_down(Site& site, std::int64_t grace_ms = 10'000) {
  SpawnRequest request = shell_in_terminal(site);
  request.grace_ms = grace_ms;
  auto process = co_await site.spawn(std::move(request));
  if (!process) co_return std::nullopt;
  Typist typist(site, std::move(process));
  co_await typist.see(std::string(kPrompt));
  co_return typist;
}

}  // namespace executor::testing
