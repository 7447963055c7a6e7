#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "libs/base/awake_time.h"
#include "libs/base/clock.h"
#include "libs/wire/admin.h"
#include "libs/wire/frames/frame.h"
#include "libs/wire/frames/message.h"
#include "libs/wire/handshake.h"
#include "libs/wire/session/pulse.h"
#include "libs/wire/session/served_session.h"
#include "libs/wire/token.h"

namespace wire {

using LinkId = std::uint64_t;

inline constexpr base::Milliseconds kHelloWithin{5'000};
inline constexpr base::Milliseconds kHandshakeWithin{10'000};

// The time as its owner knows it: `wall` may be ahead of this machine's clock, which stood still
// while the sandbox was paused.
struct Now {
  base::Moment moment;
  base::WallTime wall;
};

struct HostSettings {
  std::string instance;
  std::string attach_key;
  std::string cwd, workspace_root;
  std::vector<std::string> features = {};
  std::size_t sessions_max = 64;
  std::size_t sessions_each_max = 48;  // Of one subject: others find a place, too.
  std::size_t links_max = 128;
};

enum class SessionEnd { kByClient, kLease, kLost, kGaveWay, kBroken };
struct HostEvent {
  std::string session;
  std::variant<SessionEvent, SessionEnd> what;
};

// All sessions of one executor and the links to them: who is let in, which link a session has, how
// long one lives without. Pure: frames and times in, frames and events out.
//   link: hello -> challenge -> prove -> welcome -> its session's messages
class SessionHost {
 public:
  SessionHost(HostSettings settings, Identity identity, base::Moment now);

  // A connection; nothing when there are too many. Of those without proof the oldest makes room.
  std::optional<LinkId> link_up(Now now);
  void receive(LinkId link, Frame frame, Now now);
  void refuse(LinkId link, std::string_view why);  // What came is no frame.
  // What is to be sent on it next. When nothing is and it is over, it is to be hung up.
  std::optional<Frame> next(LinkId link);
  bool over(LinkId link) const;
  void link_down(LinkId link);  // The connection is gone.

  // To be called a few times a second: silence, expiry, leases.
  void tick(Now now);
  // Leases stand still, links are closed, and none is let in, until one of the two below.
  void quiesce(Now now);
  void thaw(Now now);
  // `news`: what happened to the sandbox, for those whose sessions are not there any more.
  void resumed(const Identity& identity, Now now, std::optional<News> news = std::nullopt);
  void shut_down();

  std::vector<HostEvent> take_events() { return std::exchange(events_, {}); }
  ServedSession* find(const std::string& session);
  std::optional<Ceiling> ceiling(const std::string& session) const;
  std::optional<LinkId> link_of(const std::string& session) const;
  std::size_t sessions() const { return sessions_.size(); }
  // The latest that a proven token says of the time.
  base::WallTime newest_birth() const { return newest_birth_; }

 private:
  enum class Phase { kFresh, kChallenged, kOpen };
  struct Link {
    Phase phase = Phase::kFresh;
    base::Moment begun;
    Pulse pulse;
    Hello hello = {};
    Nonces nonces = {};
    std::optional<Claims> claims = std::nullopt;
    std::string session = {};
    std::optional<Message> answer = std::nullopt;  // Of the handshake, or to a renewal.
    bool ping_due = false, pong_due = false;
    std::optional<Close> close = std::nullopt;
    bool over = false;  // Nothing is received any more; `close`, if any, is still to be sent.
  };
  struct Session {
    ServedSession served = {};
    std::string subject;
    Ceiling ceiling = Ceiling::kReadOnly;
    base::Milliseconds lease{}, lease_left{};
    std::optional<LinkId> link = std::nullopt;
    std::uint64_t left = 0;  // The greater, the later it lost its link.
  };

  void receive(LinkId id, Link& link, Message message, Now now);
  void greet(LinkId id, Link& link, Hello hello, Now now);
  void admit(LinkId id, Link& link, const Prove& prove, Now now);
  void renew(LinkId id, Link& link, const Renew& renewal, Now now);
  void hand_on(LinkId id, Link& link, Message message);
  void break_off(LinkId id, Link& link, std::string_view why);
  std::optional<Claims> judge(LinkId id, Link& link, const std::string& claims, Now now);
  base::Result<std::string> session_for(Link& link, Welcome& welcome);
  base::Result<base::Done> make_room_for(const std::string& subject);
  std::optional<SessionEnd> how_it_ended(const std::string& session) const;
  News what_became_of(std::optional<SessionEnd> why) const;
  void close(LinkId id, Link& link, CloseReason reason, std::string_view message = {},
             std::optional<std::int64_t> retry_after_ms = {});
  void leave(LinkId id, Link& link);
  void end(const std::string& session, SessionEnd why);
  void close_all(CloseReason reason);
  void count_leases(base::Moment now);
  bool make_room();
  std::int64_t expires_ms(const Claims& claims, Now now) const;

  HostSettings settings_;
  Identity identity_;
  std::map<LinkId, Link> links_;
  LinkId last_link_ = 0;
  std::map<std::string, Session> sessions_;
  std::uint64_t links_lost_ = 0;
  std::deque<std::pair<std::string, SessionEnd>> gone_;  // The newest that ended.
  std::optional<News> news_;                             // Of the incarnation.
  std::vector<HostEvent> events_;
  base::AwakeTime awake_;
  base::Milliseconds counted_{};
  std::optional<CloseReason> shut_;  // Why nobody is let in, and leases stand still.
  base::WallTime newest_birth_{};
};

}  // namespace wire
