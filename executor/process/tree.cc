#include "executor/process/tree.h"

#include <signal.h>

#include <algorithm>
#include <set>

#include "executor/process/groups.h"
#include "libs/base/folder.h"
#include "libs/base/strings.h"

namespace executor {
namespace {

namespace fs = std::filesystem;
using base::ProcessFacts;

constexpr int kRoundsMax = 32;  // Against a tree that forks as fast as it is read.

}  // namespace

std::vector<ProcessFacts> read_processes() {
  std::vector<ProcessFacts> all;
  for (const fs::path& entry : base::entries_of("/proc")) {
    const auto pid = base::parse_integer(entry.filename().string());
    if (!pid) continue;
    if (const auto facts = base::look_at_process(static_cast<pid_t>(*pid))) all.push_back(*facts);
  }
  return all;
}

std::vector<ProcessFacts> descendants(const std::vector<ProcessFacts>& all, pid_t root) {
  std::set<pid_t> found{root};
  for (const ProcessFacts& process : all)
    if (process.session == root || process.group == root) found.insert(process.pid);
  for (bool grew = true; grew;) {
    grew = false;
    for (const ProcessFacts& process : all)
      if (found.contains(process.parent)) grew |= found.insert(process.pid).second;
  }
  std::vector<ProcessFacts> members;
  for (const ProcessFacts& process : all)
    if (found.contains(process.pid)) members.push_back(process);
  return members;
}

void Tree::root_ended() {
  if (!group_) static_cast<void>(members());
  root_ended_ = true;
}

std::vector<ProcessFacts> Tree::members() {
  const auto all = read_processes();
  std::vector<ProcessFacts> found;
  if (!root_ended_) found = descendants(all, root_);
  for (const ProcessFacts& process : all) {
    const auto seen = known_.find(process.pid);
    if (seen == known_.end() || seen->second != process.start) continue;
    for (const ProcessFacts& more : descendants(all, process.pid)) found.push_back(more);
  }
  if (group_) {
    const auto in_group = members_of(*group_);
    for (const ProcessFacts& process : all)
      if (std::count(in_group.begin(), in_group.end(), process.pid)) found.push_back(process);
  }
  known_.clear();
  std::erase_if(found, [this](const ProcessFacts& process) {
    return process.ended() || !known_.emplace(process.pid, process.start).second;
  });
  return found;
}

bool Tree::signal(int number) {
  if (number == SIGKILL) return kill();
  const auto found = members();
  for (const ProcessFacts& process : found) ::kill(process.pid, number);
  return !found.empty();
}

bool Tree::kill() {
  // The group first, as nobody escapes it; then what had moved on to another group.
  const bool in_group = group_ && !members_of(*group_).empty();
  if (in_group) static_cast<void>(base::write_setting(*group_ / "cgroup.kill", "1"));
  // Stopped first, so that nobody forks on while the tree is read; a killed one never forks.
  std::set<std::pair<pid_t, std::uint64_t>> stopped;
  for (int round = 0; round < kRoundsMax; ++round) {
    bool grew = false;
    for (const ProcessFacts& process : members()) {
      if (!stopped.insert({process.pid, process.start}).second) continue;
      ::kill(process.pid, SIGSTOP);
      grew = true;
    }
    if (!grew) break;
  }
  for (const auto& [pid, start] : stopped) ::kill(pid, SIGKILL);
  return in_group || !stopped.empty();
}

}  // namespace executor
