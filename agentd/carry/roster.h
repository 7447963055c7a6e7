#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "libs/wire/frames/message.h"

namespace agentd {

struct RosterLimits {
  std::size_t greeting_max = 256;   // Links whose hello is still to come.
  std::size_t links_max = 1'024;    // Those that have said it.
  std::size_t links_each_max = 64;  // Of them, to one sandbox.
  std::size_t parting_max = 64;     // Whose harness has gone, and left a last word.
};

// So many of them as there are descriptors for: each link has one to the harness and one to the
// executor, and some are needed besides.
RosterLimits fitting(RosterLimits wanted, std::size_t descriptors);

// All harness links of this agentd: how many there may be, and which has a session. Pure.
class Roster {
 public:
  class Member {
   public:
    virtual ~Member() = default;
    // It is to end, and the harness to be told so. It stays listed until it has.
    virtual void leave(wire::Close close) = 0;
  };

  explicit Roster(RosterLimits limits) : limits_(limits) {}

  // A link that has said nothing yet. When there are too many of those the oldest has to go.
  void join(Member& member);
  // It has said hello, and asks for a sandbox; false: too many have.
  bool enter(Member& member, const wire::SandboxName& sandbox);
  // Whoever had that session before has to go: the newest wins, also when the older one is just
  // dialling its executor anew and would otherwise take the session back.
  void take(Member& member, const std::string& session);
  // Its harness has gone, and there is still a word of it to be told: it keeps no place from who
  // comes. When there are too many of those the oldest has to go.
  void part(Member& member);
  void remove(Member& member);
  // All have to go, each with a word of its own; and nobody is let in any more.
  void close(const std::function<wire::Close()>& word);
  bool closed() const { return closed_; }

  std::size_t greeting() const { return greeting_.size(); }
  std::size_t links() const { return links_; }  // That have a place.

 private:
  struct Entry {
    std::string sandbox, session;
    bool has_place = true;
  };
  void give_up_session(Member& member);
  void give_up_place(Member& member);

  const RosterLimits limits_;
  bool closed_ = false;
  std::list<Member*> greeting_;  // The oldest first.
  std::unordered_map<Member*, Entry> entered_;
  std::list<Member*> parting_;  // Of those; the oldest first.
  std::size_t links_ = 0;
  std::map<std::string, std::size_t> by_sandbox_;
  std::map<std::pair<std::string, std::string>, Member*> by_session_;  // Each of one sandbox.
};

}  // namespace agentd
