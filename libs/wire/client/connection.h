#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/result.h"
#include "libs/wire/client/link.h"
#include "libs/wire/client/redial.h"
#include "libs/wire/frames/message.h"
#include "libs/wire/session/client_session.h"

namespace wire {

struct ConnectionSettings {
  std::string socket;  // A Unix socket of agentd.
  ClientSettings session = {};
  // For each link anew, so it may come from a file that others renew; nothing: none is needed. One
  // that cannot be had now is asked for again; kDenied and kInvalid are final.
  std::function<base::Result<Credential>()> credential = {};
  // Until the first welcome. From then on it is the session's lease, without a link.
  base::Milliseconds open_within{30'000};
};

// How long to wait: until then, or until somebody else's descriptor can be read.
struct Until {
  base::Moment moment = base::Moment::max();
  int wake = -1;
};

// What happened to requests and streams. That a stream moved is not told: it is looked at after
// each turn.
using ConnectionEvent = std::variant<Answered, Failed, StreamUnwanted, Noticed>;

// A session with a sandbox, carried over one link after another, for straight-line code: nothing
// happens but in turn(), which waits in poll(2), also for what the caller waits for. A cut shows
// only in cut_since(); requests and streams go on when there is a link again.
//
//   Connection connection(settings, clock);
//   TRY(auto welcome, connection.open({.moment = clock.now() + 10s}));
//   TRY(auto ok, connection.ask(ListProcessesArgs{}));
class Connection {
 public:
  Connection(ConnectionSettings settings, const base::Clock& clock);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const ConnectionSettings& settings() const { return settings_; }

  // Until the first welcome. kUnavailable: nobody listens, or not in time.
  base::Result<Welcome, Failure> open(Until until = {});
  const std::optional<Welcome>& welcome() const { return welcome_; }  // The newest.

  // Requests and streams: ask, cancel, append, take and so on.
  ClientSession& session() { return session_; }
  // Waits until the link, or one of `also`, has something, and carries what there is both ways.
  // `also` has its revents then, and all streams may be looked at.
  void turn(std::span<pollfd> also, base::Moment until = base::Moment::max());
  std::vector<ConnectionEvent> take_events() { return std::exchange(events_, {}); }

  // A request and its reply, whatever happens on the way. Events of others wait meanwhile.
  base::Result<base::Json, Failure> ask(Call call, Until until = {});
  // The same of a known operation, as of call_of.
  template <typename Args>
  base::Result<typename Args::Ok, Failure> ask(const Args& args, Call how = {}, Until until = {}) {
    TRY(const auto ok, ask(call_of(args, std::move(how)), until));
    auto read = from_json<typename Args::Ok>(ok);
    if (!read) return failure(FailureCode::kInternal, read.error().message);
    return *std::move(read);
  }

  // Since when there is no link, and the session goes on without one.
  std::optional<base::Moment> cut_since() const { return cut_since_; }
  // Why there is no link, where that is known: what the server said last, or why no credential.
  const std::string& trouble() const { return trouble_; }
  // Why there will be none any more. Requests that wait then have no reply.
  const std::optional<Failure>& over() const { return over_; }
  // Ends the session, and with it what it has begun.
  void finish(base::Milliseconds at_most = base::Milliseconds(1'000));

 private:
  void move();  // Whatever is due, and can be done without waiting.
  void dial();
  void tend_link();
  void carry();
  Link::Received hear();
  void hear_events();
  void note_expiry(base::Milliseconds left);
  void renew_credential();
  void hang_up(const std::optional<Close>& why);
  void go_without(const base::Error& why);
  void look_ahead();
  void go_on(const AfterLink& after);
  void give_up(Failure why);
  base::Moment next_moment(base::Moment until) const;
  base::Moment gives_up_at() const;
  std::optional<base::Result<base::Json, Failure>> reply_to(std::uint32_t id);
  Failure without_reply(std::uint32_t id);
  Failure too_late() const;
  Failure out_of_patience() const;

  ConnectionSettings settings_;
  const base::Clock& clock_;
  ClientSession session_;
  std::optional<Link> link_;
  std::optional<Welcome> welcome_;
  std::optional<Close> closed_;  // This link, by either side.
  std::vector<ConnectionEvent> events_;
  std::vector<pollfd> set_;

  base::Moment begun_, dial_at_, tick_at_, linked_at_;
  base::Moment renew_at_ = base::Moment::max();
  std::optional<base::Moment> cut_since_;
  Redialling so_far_;
  std::string trouble_;
  std::optional<Failure> over_;
};

}  // namespace wire
