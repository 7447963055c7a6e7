#include "libs/wire/session/session_host.h"

#include <algorithm>
#include <utility>

#include "libs/base/crypto.h"
#include "libs/base/strings.h"
#include "libs/wire/proof.h"

namespace wire {
namespace {

constexpr std::size_t kGoneMax = 64;
constexpr std::size_t kSessionIdBytes = 16;
constexpr std::size_t kLinkNameBytes = 8;

}  // namespace

SessionHost::SessionHost(HostSettings settings, Identity identity, base::Moment now)
    : settings_(std::move(settings)), identity_(std::move(identity)), awake_(now) {}

std::optional<LinkId> SessionHost::link_up(Now now) {
  if (links_.size() >= settings_.links_max && !make_room()) return std::nullopt;
  links_.emplace(++last_link_, Link{.begun = now.moment, .pulse = Pulse(now.moment)});
  return last_link_;
}

// Ids grow, so the first that has not proven itself has waited longest.
bool SessionHost::make_room() {
  const auto oldest = std::ranges::find_if(
      links_, [](const auto& one) { return one.second.phase != Phase::kOpen; });
  if (oldest == links_.end()) return false;
  links_.erase(oldest);
  return true;
}

void SessionHost::receive(LinkId id, Frame frame, Now now) {
  const auto found = links_.find(id);
  if (found == links_.end() || found->second.over) return;
  Link& link = found->second;
  link.pulse.heard(now.moment);
  auto message = to_message(std::move(frame));
  if (!message) return break_off(id, link, message.error().message);
  receive(id, link, *std::move(message), now);
}

void SessionHost::refuse(LinkId id, std::string_view why) {
  const auto found = links_.find(id);
  if (found != links_.end()) break_off(id, found->second, why);
}

// Its peer broke the rules. Nobody knows what is true of its session then, so that has ended.
void SessionHost::break_off(LinkId id, Link& link, std::string_view why) {
  const std::string session = link.phase == Phase::kOpen && !link.over ? link.session : "";
  close(id, link, CloseReason::kProtocol, why);
  end(session, SessionEnd::kBroken);
}

void SessionHost::receive(LinkId id, Link& link, Message message, Now now) {
  if (const auto* closed = std::get_if<Close>(&message)) {
    const std::string session = link.session;
    const bool open = link.phase == Phase::kOpen;
    leave(id, link);
    link.over = true;
    if (open && closed->reason == CloseReason::kEnd) end(session, SessionEnd::kByClient);
    if (open && closed->reason == CloseReason::kProtocol) end(session, SessionEnd::kBroken);
    return;
  }
  if (link.phase == Phase::kFresh) {
    if (auto* hello = std::get_if<Hello>(&message)) return greet(id, link, std::move(*hello), now);
    return close(id, link, CloseReason::kProtocol, "it did not begin with hello");
  }
  if (link.phase == Phase::kChallenged) {
    if (const auto* prove = std::get_if<Prove>(&message)) return admit(id, link, *prove, now);
    return close(id, link, CloseReason::kProtocol, "it did not prove itself");
  }
  if (std::holds_alternative<Ping>(message)) {
    link.pong_due = true;
  } else if (const auto* renewal = std::get_if<Renew>(&message)) {
    renew(id, link, *renewal, now);
  } else if (!std::holds_alternative<Pong>(message)) {
    hand_on(id, link, std::move(message));
  }
}

void SessionHost::hand_on(LinkId id, Link& link, Message message) {
  auto events = sessions_.at(link.session).served.receive(std::move(message));
  if (!events) return break_off(id, link, events.error().message);
  for (SessionEvent& event : *events) events_.push_back({link.session, std::move(event)});
}

// Nothing: the link is told why.
std::optional<Claims> SessionHost::judge(LinkId id, Link& link, const std::string& claims,
                                         Now now) {
  const auto refuse = [&](CloseReason reason, std::string_view why) {
    close(id, link, reason, why);
    return std::nullopt;
  };
  auto said = verify_claims(claims, TokenKind::kAttach, settings_.attach_key);
  if (!said) return refuse(CloseReason::kDenied, said.error().message);
  if (said->uid != identity_.uid || said->epoch != identity_.epoch)
    return refuse(CloseReason::kDenied, "token refused: it is for another executor");
  if (said->run != identity_.run)
    return refuse(CloseReason::kDenied, "token refused: it is for another run");
  if (has_expired(*said, now.wall)) return refuse(CloseReason::kExpired, "token refused: expired");
  return *std::move(said);
}

void SessionHost::greet(LinkId id, Link& link, Hello hello, Now now) {
  if (shut_) return close(id, link, *shut_, "nobody is let in just now");
  if (hello.protocol.min > kProtocolVersion || hello.protocol.max < kProtocolVersion)
    return close(id, link, CloseReason::kVersion,
                 "version " + std::to_string(kProtocolVersion) + " is spoken here");
  if (!hello.claims)
    return close(id, link, CloseReason::kDenied, "a token is needed that proves itself unseen");
  auto claims = judge(id, link, *hello.claims, now);
  if (!claims) return;
  if (hello.uid && *hello.uid != identity_.uid)
    return close(id, link, CloseReason::kDenied, "this is another sandbox than the one meant");
  link.phase = Phase::kChallenged;
  link.nonces = {*hello.nonce, new_nonce()};
  link.answer = Challenge{
      link.nonces.server,
      link_proof(ProofOf::kExecutor, secret_of(*hello.claims, settings_.attach_key), link.nonces)};
  link.claims = *std::move(claims);
  link.hello = std::move(hello);
}

void SessionHost::admit(LinkId id, Link& link, const Prove& prove, Now now) {
  const std::string secret = secret_of(*link.hello.claims, settings_.attach_key);
  if (!is_link_proof(prove.proof, ProofOf::kClient, secret, link.nonces))
    return close(id, link, CloseReason::kDenied, "the token was not proven");
  newest_birth_ = std::max(newest_birth_, link.claims->issued);
  Welcome welcome{.instance = settings_.instance,
                  .uid = identity_.uid,
                  .epoch = identity_.epoch,
                  .incarnation = identity_.incarnation,
                  .cwd = settings_.cwd,
                  .workspace_root = settings_.workspace_root,
                  .ceiling = link.claims->ceiling,
                  .expires_ms = expires_ms(*link.claims, now),
                  .features = settings_.features};
  const auto found = session_for(link, welcome);
  if (!found) return close(id, link, CloseReason::kBusy, found.error().message, 30'000);
  const std::string& name = *found;
  Session& session = sessions_.at(name);
  if (session.link)
    close(*session.link, links_.at(*session.link), CloseReason::kReplaced,
          "a newer link has this session");
  session.link = id;
  session.ceiling = link.claims->ceiling;
  session.lease = base::Seconds(link.hello.lease_seconds);
  welcome.link = base::random_hex(kLinkNameBytes);
  session.served.link_up(welcome.link);
  welcome.session = link.session = name;
  welcome.lease_ms = session.lease.count();
  link.phase = Phase::kOpen;
  link.answer = std::move(welcome);
}

// The session that it asks to go on with, or a new one. kRateLimited: there are too many.
base::Result<std::string> SessionHost::session_for(Link& link, Welcome& welcome) {
  std::optional<News> news;
  if (link.hello.session) {
    const auto known = sessions_.find(*link.hello.session);
    if (known != sessions_.end() && known->second.subject == link.claims->subject) {
      welcome.resumed = true;
      return known->first;
    }
    const auto ended = how_it_ended(*link.hello.session);
    // One that this executor never had went with what was before, if the sandbox is another since.
    const bool is_of_before = !ended && news_;
    welcome.why =
        ended == SessionEnd::kLost || is_of_before ? NotResumed::kLost : NotResumed::kUnknown;
    news = what_became_of(ended);
  }
  CHECK_OK(make_room_for(link.claims->subject));
  const std::string name = base::random_hex(kSessionIdBytes);
  const auto made = sessions_.emplace(name, Session{.subject = link.claims->subject}).first;
  if (news) made->second.served.tell(news->kind, news->message);
  return name;
}

// Of one subject's own sessions the one that has been without a link for longest gives way.
base::Result<base::Done> SessionHost::make_room_for(const std::string& subject) {
  std::size_t its = 0;
  auto forgotten = sessions_.end();
  for (auto one = sessions_.begin(); one != sessions_.end(); ++one) {
    const Session& session = one->second;
    if (session.subject != subject) continue;
    ++its;
    if (session.link) continue;
    if (forgotten == sessions_.end() || session.left < forgotten->second.left) forgotten = one;
  }
  const bool too_many_of_it = its >= settings_.sessions_each_max;
  if (!too_many_of_it && sessions_.size() < settings_.sessions_max) return base::Done{};
  if (forgotten != sessions_.end()) {
    end(std::string(forgotten->first), SessionEnd::kGaveWay);
    return base::Done{};
  }
  if (too_many_of_it)
    return base::error(base::ErrorCode::kRateLimited, "this harness has ", std::to_string(its),
                       " sessions here, and each has a link: end some");
  return base::error(base::ErrorCode::kRateLimited, "the sandbox has ",
                     std::to_string(sessions_.size()), " sessions, which is all it may have");
}

std::optional<SessionEnd> SessionHost::how_it_ended(const std::string& session) const {
  for (const auto& [name, why] : gone_)
    if (name == session) return why;
  return std::nullopt;
}

// Of a session that is not there: what its client cannot know.
News SessionHost::what_became_of(std::optional<SessionEnd> why) const {
  if (why == SessionEnd::kLease)
    return {"lost",
            "The session ended since no link came for as long as its lease. Its processes were "
            "ended; files are as they are."};
  if (why == SessionEnd::kByClient)
    return {"lost", "The session was ended by its client, and its processes with it."};
  if (why == SessionEnd::kBroken)
    return {"lost",
            "The session ended since the protocol was broken in it, and its processes with it. "
            "Files are as they are."};
  if (why == SessionEnd::kGaveWay)
    return {"lost",
            "The session had no link and gave way to a newer one of the same harness, which has as "
            "many as it may. Its processes were ended; files are as they are."};
  if (news_) return *news_;
  if (why == SessionEnd::kLost)
    return {"lost",
            "The sandbox came back without what ran in it before. Processes and their handles are "
            "gone; files are as they are now."};
  return {"lost",
          "The session is not known here: the executor has begun anew since, or the session ended "
          "long ago. Its processes are gone; files are as they are now."};
}

void SessionHost::renew(LinkId id, Link& link, const Renew& renewal, Now now) {
  if (!renewal.claims)
    return close(id, link, CloseReason::kDenied, "a token is needed that proves itself unseen");
  auto claims = judge(id, link, *renewal.claims, now);
  if (!claims) return;
  const std::string secret = secret_of(*renewal.claims, settings_.attach_key);
  if (!is_link_proof(*renewal.proof, ProofOf::kRenewal, secret, link.nonces))
    return close(id, link, CloseReason::kDenied, "the token was not proven");
  if (claims->subject != link.claims->subject)
    return close(id, link, CloseReason::kDenied, "the token is another's");
  newest_birth_ = std::max(newest_birth_, claims->issued);
  link.claims = *std::move(claims);
  sessions_.at(link.session).ceiling = link.claims->ceiling;
  link.answer = Renewed{link.claims->ceiling, expires_ms(*link.claims, now)};
}

std::int64_t SessionHost::expires_ms(const Claims& claims, Now now) const {
  return std::max<std::int64_t>((claims.expires - now.wall).count(), 1);
}

std::optional<Frame> SessionHost::next(LinkId id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return std::nullopt;
  Link& link = found->second;
  if (link.close) return to_frame(*std::exchange(link.close, std::nullopt));
  if (link.over) return std::nullopt;
  if (link.answer) return to_frame(*std::exchange(link.answer, std::nullopt));
  if (std::exchange(link.pong_due, false)) return to_frame(Pong{});
  if (std::exchange(link.ping_due, false)) return to_frame(Ping{});
  if (link.phase != Phase::kOpen) return std::nullopt;
  auto message = sessions_.at(link.session).served.next();
  if (!message) return std::nullopt;
  return to_frame(*std::move(message));
}

bool SessionHost::over(LinkId id) const {
  const auto found = links_.find(id);
  return found == links_.end() || found->second.over;
}

void SessionHost::close(LinkId id, Link& link, CloseReason reason, std::string_view message,
                        std::optional<std::int64_t> retry_after_ms) {
  if (link.over) return;
  leave(id, link);
  link.over = true;
  link.answer.reset();
  link.close = Close{reason, std::string(base::cut(message, 1024)), retry_after_ms};
}

// Its session goes on without it, for as long as its lease.
void SessionHost::leave(LinkId id, Link& link) {
  if (link.phase != Phase::kOpen || link.over) return;
  const auto found = sessions_.find(link.session);
  if (found == sessions_.end() || found->second.link != id) return;
  found->second.link.reset();
  found->second.left = ++links_lost_;
  found->second.lease_left = found->second.lease;
  found->second.served.link_down();
}

void SessionHost::link_down(LinkId id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  leave(id, found->second);
  links_.erase(found);
}

void SessionHost::end(const std::string& name, SessionEnd why) {
  if (sessions_.erase(name) == 0) return;
  gone_.emplace_back(name, why);
  if (gone_.size() > kGoneMax) gone_.pop_front();
  events_.push_back({name, why});
}

void SessionHost::tick(Now now) {
  for (auto& [id, link] : links_) {
    if (link.over) continue;
    const base::Milliseconds waited = now.moment - link.begun;
    if (link.phase != Phase::kOpen) {
      if (waited >= (link.phase == Phase::kFresh ? kHelloWithin : kHandshakeWithin))
        close(id, link, CloseReason::kDenied, "it took too long to prove itself");
    } else if (has_expired(*link.claims, now.wall)) {
      close(id, link, CloseReason::kExpired, "its token has ended");
    } else if (link.pulse.dead(now.moment)) {
      close(id, link, CloseReason::kSilent, "nothing was heard for 45 s");
    } else if (link.pulse.ask(now.moment)) {
      link.ping_due = true;
    }
  }
  count_leases(now.moment);
}

void SessionHost::count_leases(base::Moment now) {
  const base::Milliseconds awake = awake_.look(now);
  const base::Milliseconds passed = awake - std::exchange(counted_, awake);
  if (shut_) return;
  std::vector<std::string> ended;
  for (auto& [name, session] : sessions_) {
    if (session.link) continue;
    session.lease_left -= passed;
    if (session.lease_left <= base::Milliseconds(0)) ended.push_back(name);
  }
  for (const std::string& name : ended) end(name, SessionEnd::kLease);
}

void SessionHost::quiesce(Now now) {
  count_leases(now.moment);
  shut_ = CloseReason::kQuiesce;
  close_all(*shut_);
}

void SessionHost::thaw(Now now) {
  count_leases(now.moment);
  shut_.reset();
}

void SessionHost::resumed(const Identity& identity, Now now, std::optional<News> news) {
  thaw(now);
  const bool moved = identity.uid != identity_.uid || identity.epoch != identity_.epoch ||
                     identity.incarnation != identity_.incarnation;
  const bool other_run = identity.run != identity_.run;
  identity_ = identity;
  if (moved || news) news_ = std::move(news);
  if (moved) {
    close_all(CloseReason::kLost);
    while (!sessions_.empty()) end(std::string(sessions_.begin()->first), SessionEnd::kLost);
  } else if (other_run) {
    close_all(CloseReason::kExpired);  // Their tokens are of the run before.
  }
}

void SessionHost::shut_down() {
  shut_ = CloseReason::kShutdown;
  close_all(*shut_);
}

void SessionHost::close_all(CloseReason reason) {
  for (auto& [id, link] : links_) close(id, link, reason);
}

ServedSession* SessionHost::find(const std::string& name) {
  const auto found = sessions_.find(name);
  return found == sessions_.end() ? nullptr : &found->second.served;
}

std::optional<Ceiling> SessionHost::ceiling(const std::string& name) const {
  const auto found = sessions_.find(name);
  if (found == sessions_.end()) return std::nullopt;
  return found->second.ceiling;
}

std::optional<LinkId> SessionHost::link_of(const std::string& name) const {
  const auto found = sessions_.find(name);
  return found == sessions_.end() ? std::nullopt : found->second.link;
}

}  // namespace wire
