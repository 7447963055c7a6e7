#include "libs/wire/session/session_host.h"

#include <gtest/gtest.h>

#include <functional>

#include "libs/wire/proof.h"

namespace wire {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

const std::string kKey = derive_key("fleet", TokenKind::kAttach, "uid-1", 3);
const Identity kIdentity{"uid-1", 3, 4, 7};

// An executor's host and its time.
class Executor {
 public:
  explicit Executor(HostSettings settings = {})
      : host(
            [&] {
              settings.instance = "i-1";
              settings.attach_key = kKey;
              settings.cwd = settings.workspace_root = "/home/user";
              return std::move(settings);
            }(),
            kIdentity, now.moment) {}

  Claims claims(std::string subject = "bot") const {
    return {.uid = "uid-1",
            .epoch = 3,
            .run = 7,
            .ceiling = Ceiling::kWorkspaceWrite,
            .subject = std::move(subject),
            .issued = now.wall,
            .expires = now.wall + minutes(15)};
  }
  void pass(base::Milliseconds time, base::Milliseconds step = milliseconds(500)) {
    for (base::Milliseconds passed{}; passed < time; passed += step) {
      now.moment += step;
      now.wall += step;
      host.tick(now);
    }
  }
  std::optional<Message> hear(LinkId link) {
    const auto frame = host.next(link);
    if (!frame) return std::nullopt;
    return *to_message(*frame);
  }
  void say(LinkId link, Message message) { host.receive(link, to_frame(std::move(message)), now); }
  // Why the link was closed; nothing when it was not.
  std::optional<CloseReason> closed(LinkId link) {
    while (const auto message = hear(link))
      if (const auto* close = std::get_if<Close>(&*message)) return close->reason;
    return std::nullopt;
  }

  Now now{base::Moment(seconds(1000)), base::WallTime(seconds(1'800'000'000))};
  SessionHost host;
};

struct Opened {
  LinkId link = 0;
  Nonces nonces;
  std::optional<Welcome> welcome;
};

// Goes through the whole handshake; no welcome when it was refused, and why.
Opened open(Executor& executor, const Claims& claims, Hello hello = {},
            CloseReason* refusal = nullptr) {
  const SplitToken token = *split_token(sign(claims, kKey));
  Opened opened{.link = *executor.host.link_up(executor.now), .nonces = {new_nonce(), {}}};
  hello.claims = token.claims;
  hello.nonce = opened.nonces.client;
  executor.say(opened.link, hello);
  const auto answer = executor.hear(opened.link);
  if (const auto* close = answer ? std::get_if<Close>(&*answer) : nullptr; close && refusal)
    *refusal = close->reason;
  const auto* challenge = answer ? std::get_if<Challenge>(&*answer) : nullptr;
  if (!challenge) return opened;
  opened.nonces.server = challenge->nonce;
  EXPECT_TRUE(is_link_proof(challenge->proof, ProofOf::kExecutor, token.secret, opened.nonces));
  executor.say(opened.link, Prove{link_proof(ProofOf::kClient, token.secret, opened.nonces)});
  const auto welcomed = executor.hear(opened.link);
  if (const auto* welcome = welcomed ? std::get_if<Welcome>(&*welcomed) : nullptr)
    opened.welcome = *welcome;
  return opened;
}

Opened open(Executor& executor, std::optional<std::string> session = {}) {
  return open(executor, executor.claims(), {.session = std::move(session)});
}

std::vector<SessionEnd> ends(Executor& executor) {
  std::vector<SessionEnd> ends;
  for (const HostEvent& event : executor.host.take_events())
    if (const auto* end = std::get_if<SessionEnd>(&event.what)) ends.push_back(*end);
  return ends;
}

TEST(SessionHost, WelcomesWhoProvesItsToken) {
  Executor executor;
  const Opened opened = open(executor);
  ASSERT_TRUE(opened.welcome);
  EXPECT_EQ(opened.welcome->instance, "i-1");
  EXPECT_EQ(opened.welcome->incarnation, 4);
  EXPECT_EQ(opened.welcome->ceiling, Ceiling::kWorkspaceWrite);
  EXPECT_EQ(opened.welcome->expires_ms, milliseconds(minutes(15)).count());
  EXPECT_EQ(opened.welcome->lease_ms, 300'000);
  EXPECT_FALSE(opened.welcome->resumed);
  EXPECT_EQ(executor.host.sessions(), 1u);
  EXPECT_EQ(executor.host.newest_birth(), executor.now.wall);
}

TEST(SessionHost, RefusesWhoHasNoTokenOfItsOwn) {
  const auto with = [](auto change) {
    Executor executor;
    Claims claims = executor.claims();
    change(claims);
    return claims;
  };
  const struct {
    const char* name;
    Claims claims;
    CloseReason reason = CloseReason::kDenied;
  } cases[] = {
      {"an_admins", with([](Claims& c) { c.kind = TokenKind::kAdmin; })},
      {"another_uid", with([](Claims& c) { c.uid = "uid-2"; })},
      {"another_epoch", with([](Claims& c) { c.epoch = 2; })},
      {"an_older_run", with([](Claims& c) { c.run = 6; })},
      {"a_later_run", with([](Claims& c) { c.run = 8; })},
      {"expired", with([](Claims& c) { c.expires -= minutes(21); }), CloseReason::kExpired},
  };
  for (const auto& test : cases) {
    Executor executor;
    CloseReason told = CloseReason::kOther;
    const Opened opened = open(executor, test.claims, {}, &told);
    EXPECT_FALSE(opened.welcome) << test.name;
    EXPECT_TRUE(executor.host.over(opened.link)) << test.name;
    EXPECT_EQ(told, test.reason) << test.name;
    EXPECT_EQ(executor.host.newest_birth(), base::WallTime{}) << test.name;
  }
}

TEST(SessionHost, LetsInWhoMeansThisSandbox) {
  const std::pair<std::optional<std::string>, bool> cases[] = {
      {{}, true}, {"uid-1", true}, {"uid-2", false}};
  for (const auto& [uid, in] : cases) {
    Executor executor;
    EXPECT_EQ(open(executor, executor.claims(), {.uid = uid}).welcome.has_value(), in)
        << uid.value_or("any");
  }
}

TEST(SessionHost, TakesATokenWithinTheSlack) {
  Executor executor;
  Claims claims = executor.claims();
  claims.expires = executor.now.wall - minutes(4);
  EXPECT_TRUE(open(executor, claims).welcome);
}

TEST(SessionHost, ClosesALinkThatDoesNotBeginAsItShould) {
  const Hello proper{.claims = "sf1.x", .nonce = std::string(32, '0')};
  const struct {
    const char* name;
    Message first;
    CloseReason reason;
  } cases[] = {
      {"no_hello", Ping{}, CloseReason::kProtocol},
      {"no_claims", proper, CloseReason::kDenied},
      {"a_token_that_is_shown", Hello{.token = "secret"}, CloseReason::kDenied},
      {"no_credential", Hello{}, CloseReason::kDenied},
      {"a_later_version", Hello{.protocol = {2, 3}}, CloseReason::kVersion},
      {"a_close", Close{CloseReason::kEnd}, CloseReason::kOther},
  };
  for (const auto& test : cases) {
    Executor executor;
    const LinkId link = *executor.host.link_up(executor.now);
    executor.say(link, test.first);
    EXPECT_EQ(executor.closed(link).value_or(CloseReason::kOther), test.reason) << test.name;
    EXPECT_TRUE(executor.host.over(link)) << test.name;
  }
}

TEST(SessionHost, ClosesALinkOnWhichNoFrameCame) {
  Executor executor;
  const Opened opened = open(executor);
  executor.host.refuse(opened.link, "frame refused: it is too short");
  EXPECT_EQ(executor.closed(opened.link), CloseReason::kProtocol);
  EXPECT_EQ(ends(executor), std::vector{SessionEnd::kBroken});
  const LinkId stranger = *executor.host.link_up(executor.now);
  executor.host.refuse(stranger, "frame refused: it is too short");
  EXPECT_EQ(executor.closed(stranger), CloseReason::kProtocol);
  EXPECT_TRUE(ends(executor).empty()) << "it had none";
}

TEST(SessionHost, RefusesAProofThatIsNotTheClients) {
  for (const bool sent_back : {true, false}) {
    Executor executor;
    const SplitToken token = *split_token(sign(executor.claims(), kKey));
    const LinkId link = *executor.host.link_up(executor.now);
    executor.say(link, Hello{.claims = token.claims, .nonce = new_nonce()});
    const auto challenge = std::get<Challenge>(*executor.hear(link));
    executor.say(link, Prove{sent_back ? challenge.proof : std::string(64, '0')});
    EXPECT_EQ(executor.closed(link), CloseReason::kDenied);
    EXPECT_EQ(executor.host.sessions(), 0u);
  }
}

TEST(SessionHost, AProofOfAnotherLinkIsWorthNothing) {
  Executor executor;
  const SplitToken token = *split_token(sign(executor.claims(), kKey));
  const Opened first = open(executor);
  const LinkId link = *executor.host.link_up(executor.now);
  executor.say(link, Hello{.claims = token.claims, .nonce = first.nonces.client});
  executor.hear(link);
  executor.say(link, Prove{link_proof(ProofOf::kClient, token.secret, first.nonces)});
  EXPECT_EQ(executor.closed(link), CloseReason::kDenied);
}

TEST(SessionHost, WaitsOnlySoLongForHelloAndProof) {
  Executor executor;
  const LinkId silent = *executor.host.link_up(executor.now);
  const LinkId half = *executor.host.link_up(executor.now);
  executor.say(half, Hello{.claims = split_token(sign(executor.claims(), kKey))->claims,
                           .nonce = new_nonce()});
  executor.pass(kHelloWithin - milliseconds(500));
  EXPECT_FALSE(executor.host.over(silent));
  executor.pass(milliseconds(500));
  EXPECT_TRUE(executor.host.over(silent));
  EXPECT_FALSE(executor.host.over(half));
  executor.pass(kHandshakeWithin - kHelloWithin);
  EXPECT_TRUE(executor.host.over(half));
}

TEST(SessionHost, LetsInSoManyLinksAndSessions) {
  Executor executor({.sessions_max = 2, .links_max = 3});
  const LinkId oldest = *executor.host.link_up(executor.now);
  const Opened first = open(executor);
  const Opened second = open(executor);
  ASSERT_TRUE(first.welcome && second.welcome);
  const auto third = executor.host.link_up(executor.now);
  ASSERT_TRUE(third) << "the one without proof made room";
  EXPECT_TRUE(executor.host.over(oldest));
  executor.host.link_down(*third);
  const Opened refused = open(executor);
  EXPECT_FALSE(refused.welcome) << "a third session";
  executor.host.link_down(refused.link);
  EXPECT_TRUE(open(executor, first.welcome->session).welcome) << "but one that is known";
  EXPECT_FALSE(executor.host.link_up(executor.now)) << "all have proven themselves";
}

// covers: 4.7
TEST(SessionHost, ForgottenSessionsOfOneGiveWayToItsOwnNewOnes) {
  Executor executor({.sessions_max = 4, .sessions_each_max = 3});
  const Opened neighbour = open(executor, executor.claims("another"));
  executor.host.link_down(neighbour.link);
  std::vector<Opened> mine;
  mine.reserve(3);
  for (int i = 0; i < 3; ++i) mine.push_back(open(executor));
  executor.host.link_down(mine[1].link);
  executor.host.link_down(mine[0].link);
  const Opened fourth = open(executor);
  ASSERT_TRUE(fourth.welcome);
  EXPECT_EQ(ends(executor), std::vector{SessionEnd::kGaveWay});
  const Opened again = open(executor, mine[0].welcome->session);
  EXPECT_TRUE(again.welcome->resumed) << "it was left later";
  const LinkId late = *executor.host.link_up(executor.now);
  executor.host.link_down(late);
  const Opened refused = open(executor);
  EXPECT_FALSE(refused.welcome);
  const Hello of_the_neighbour{.session = neighbour.welcome->session};
  const Opened still = open(executor, executor.claims("another"), of_the_neighbour);
  EXPECT_TRUE(still.welcome && still.welcome->resumed) << "no other's gives way";
}

TEST(SessionHost, SaysWhoseSessionsAreTooMany) {
  const auto refusal = [](HostSettings settings, std::vector<std::string> subjects) {
    Executor executor(std::move(settings));
    LinkId last = 0;
    for (const std::string& subject : subjects)
      last = open(executor, executor.claims(subject)).link;
    const SplitToken token = *split_token(sign(executor.claims(), kKey));
    Nonces nonces{new_nonce(), {}};
    last = *executor.host.link_up(executor.now);
    executor.say(last, Hello{.claims = token.claims, .nonce = nonces.client});
    nonces.server = std::get<Challenge>(*executor.hear(last)).nonce;
    executor.say(last, Prove{link_proof(ProofOf::kClient, token.secret, nonces)});
    return std::get<Close>(*executor.hear(last));
  };
  const Close mine = refusal({.sessions_max = 4, .sessions_each_max = 1}, {"bot"});
  EXPECT_EQ(mine.reason, CloseReason::kBusy);
  EXPECT_EQ(mine.message, "this harness has 1 sessions here, and each has a link: end some");
  const Close all = refusal({.sessions_max = 2, .sessions_each_max = 2}, {"a", "b"});
  EXPECT_EQ(all.message, "the sandbox has 2 sessions, which is all it may have");
  EXPECT_EQ(all.retry_after_ms, 30'000);
}

TEST(SessionHost, TellsWhoseSessionGaveWay) {
  Executor executor({.sessions_each_max = 1});
  const Opened first = open(executor);
  executor.host.link_down(first.link);
  const Opened second = open(executor);
  executor.host.link_down(second.link);
  const Opened back = open(executor, first.welcome->session);
  ASSERT_TRUE(back.welcome);
  EXPECT_FALSE(back.welcome->resumed);
  executor.hear(back.link);
  executor.say(back.link, Resume{.link = back.welcome->link});
  const auto notice = executor.hear(back.link);
  ASSERT_TRUE(notice && std::holds_alternative<Notice>(*notice));
  EXPECT_NE(std::get<Notice>(*notice).message.find("gave way"), std::string::npos);
}

TEST(SessionHost, TheNewestLinkOfASessionWins) {
  Executor executor;
  const Opened older = open(executor);
  const Opened newer = open(executor, older.welcome->session);
  ASSERT_TRUE(newer.welcome);
  EXPECT_TRUE(newer.welcome->resumed);
  EXPECT_EQ(executor.closed(older.link), CloseReason::kReplaced);
  EXPECT_EQ(executor.host.link_of(older.welcome->session), newer.link);
  executor.host.link_down(older.link);
  EXPECT_EQ(executor.host.link_of(older.welcome->session), newer.link);
  EXPECT_EQ(executor.hear(newer.link), Message(Resume{}));
}

TEST(SessionHost, AnothersSessionIsUnknown) {
  Executor executor;
  const Opened mine = open(executor);
  const Opened theirs =
      open(executor, executor.claims("another"), {.session = mine.welcome->session});
  ASSERT_TRUE(theirs.welcome);
  EXPECT_FALSE(theirs.welcome->resumed);
  EXPECT_EQ(theirs.welcome->why, NotResumed::kUnknown);
  EXPECT_NE(theirs.welcome->session, mine.welcome->session);
  EXPECT_FALSE(executor.closed(mine.link)) << "nothing was taken from its owner";
}

TEST(SessionHost, EndsASessionWhenItsLeaseHasRun) {
  Executor executor;
  const Opened opened = open(executor, executor.claims(), {.lease_seconds = 60});
  executor.pass(seconds(40));
  executor.say(opened.link, Pong{});
  executor.pass(seconds(40));
  EXPECT_TRUE(ends(executor).empty()) << "with a link no lease runs";
  executor.host.link_down(opened.link);
  executor.pass(milliseconds(59'500));
  EXPECT_TRUE(ends(executor).empty());
  executor.pass(milliseconds(500));
  EXPECT_EQ(ends(executor), std::vector{SessionEnd::kLease});
  EXPECT_EQ(open(executor, opened.welcome->session).welcome->why, NotResumed::kUnknown);
}

TEST(SessionHost, AFrozenHourTakesTwoSecondsOfALease) {
  Executor executor;
  const Opened opened = open(executor, executor.claims(), {.lease_seconds = 10});
  executor.host.link_down(opened.link);
  for (int i = 0; i < 4; ++i) executor.pass(std::chrono::hours(1), std::chrono::hours(1));
  EXPECT_TRUE(ends(executor).empty()) << "8 s";
  executor.pass(std::chrono::hours(1), std::chrono::hours(1));
  EXPECT_EQ(ends(executor), std::vector{SessionEnd::kLease});
}

TEST(SessionHost, LeasesStandStillFromQuiesceToResumed) {
  Executor executor;
  const Opened opened = open(executor, executor.claims(), {.lease_seconds = 10});
  executor.host.link_down(opened.link);
  executor.pass(seconds(9));
  executor.host.quiesce(executor.now);
  executor.pass(minutes(10));
  executor.host.resumed({"uid-1", 3, 4, 8}, executor.now);
  executor.pass(milliseconds(500));
  EXPECT_TRUE(ends(executor).empty());
  executor.pass(milliseconds(500));
  EXPECT_EQ(ends(executor), std::vector{SessionEnd::kLease});
}

TEST(SessionHost, LeasesGoOnWhenAQuiesceLapses) {
  Executor executor;
  const Opened opened = open(executor, executor.claims(), {.lease_seconds = 1});
  executor.host.quiesce(executor.now);
  EXPECT_EQ(executor.closed(opened.link), CloseReason::kQuiesce);
  executor.pass(minutes(2));
  executor.host.thaw(executor.now);
  EXPECT_TRUE(ends(executor).empty());
  EXPECT_TRUE(open(executor, opened.welcome->session).welcome->resumed);
}

TEST(SessionHost, LetsNobodyInWhileItIsQuiescedOrShutDown) {
  Executor executor;
  const auto refusal = [&] {
    const LinkId link = *executor.host.link_up(executor.now);
    executor.say(link, Hello{.claims = "sf1.x", .nonce = std::string(32, '0')});
    return executor.closed(link);
  };
  executor.host.quiesce(executor.now);
  EXPECT_EQ(refusal(), CloseReason::kQuiesce);
  executor.host.thaw(executor.now);
  EXPECT_TRUE(open(executor).welcome);
  executor.host.shut_down();
  EXPECT_EQ(refusal(), CloseReason::kShutdown);
}

// What becomes of a session at `resumed`, by what has moved.
TEST(SessionHost, SessionsGoOnOrAreLostByWhatMoved) {
  const struct {
    const char* name;
    Identity identity;
    bool lost;
    CloseReason closed;
  } cases[] = {
      {"nothing", {"uid-1", 3, 4, 7}, false, CloseReason::kOther},
      {"run", {"uid-1", 3, 4, 8}, false, CloseReason::kExpired},
      {"incarnation", {"uid-1", 3, 5, 8}, true, CloseReason::kLost},
      {"incarnation_back", {"uid-1", 3, 3, 8}, true, CloseReason::kLost},
      {"epoch", {"uid-1", 4, 4, 7}, true, CloseReason::kLost},
      {"uid", {"uid-2", 3, 4, 7}, true, CloseReason::kLost},
  };
  for (const auto& test : cases) {
    Executor executor;
    const Opened opened = open(executor);
    executor.host.resumed(test.identity, executor.now);
    EXPECT_EQ(executor.closed(opened.link).value_or(CloseReason::kOther), test.closed) << test.name;
    EXPECT_EQ(ends(executor),
              test.lost ? std::vector{SessionEnd::kLost} : std::vector<SessionEnd>{})
        << test.name;
    Claims claims = executor.claims();
    claims.uid = test.identity.uid;
    claims.epoch = test.identity.epoch;
    claims.run = test.identity.run;
    const Opened again = open(executor, claims, {.session = opened.welcome->session});
    ASSERT_TRUE(again.welcome) << test.name;
    EXPECT_EQ(again.welcome->resumed, !test.lost) << test.name;
    if (test.lost) EXPECT_EQ(again.welcome->why, NotResumed::kLost) << test.name;
  }
}

// What the client of a session hears on a link of it, with its numbers.
std::vector<Notice> notices(Executor& executor, const Opened& opened) {
  std::vector<Notice> heard;
  executor.say(opened.link, Resume{.link = opened.welcome->link});
  while (const auto message = executor.hear(opened.link))
    if (const auto* notice = std::get_if<Notice>(&*message)) heard.push_back(*notice);
  return heard;
}

// How a session went, and what whoever asks for it again is told.
TEST(SessionHost, TellsOnceWhatBecameOfASession) {
  const News news{"rolledBack", "It is as it was at 9."};
  const struct {
    const char* name;
    std::function<void(Executor&, const Opened&)> happens;
    const char *kind, *says;
  } cases[] = {
      {"its_lease_ran",
       [](Executor& executor, const Opened& opened) {
         executor.host.link_down(opened.link);
         executor.pass(minutes(5));
       },
       "lost", "its lease"},
      {"its_client_ended_it",
       [](Executor& executor, const Opened& opened) {
         executor.say(opened.link, Close{CloseReason::kEnd});
       },
       "lost", "ended by its client"},
      {"its_incarnation_went",
       [](Executor& executor, const Opened&) {
         executor.host.resumed({"uid-1", 3, 5, 7}, executor.now);
       },
       "lost", "without what ran in it"},
      {"and_the_controller_knows_why",
       [&](Executor& executor, const Opened&) {
         executor.host.resumed({"uid-1", 3, 5, 7}, executor.now, news);
       },
       "rolledBack", "as it was at 9"},
      {"it_is_forgotten_and_the_controller_knows_why",
       [&](Executor& executor, const Opened& opened) {
         executor.say(opened.link, Close{CloseReason::kEnd});
         for (int i = 0; i < 64; ++i) {
           const Opened another = open(executor);
           executor.say(another.link, Close{CloseReason::kEnd});
         }
         executor.host.resumed(kIdentity, executor.now, news);
       },
       "rolledBack", "as it was at 9"},
  };
  for (const auto& test : cases) {
    Executor executor;
    const Opened gone = open(executor);
    test.happens(executor, gone);
    const Opened fresh = open(executor, gone.welcome->session);
    ASSERT_TRUE(fresh.welcome && !fresh.welcome->resumed) << test.name;
    const auto told = notices(executor, fresh);
    ASSERT_EQ(told.size(), 1u) << test.name;
    EXPECT_EQ(told[0].number, 1) << test.name;
    EXPECT_EQ(told[0].kind, test.kind) << test.name;
    EXPECT_NE(told[0].message.find(test.says), std::string::npos) << told[0].message;

    executor.host.link_down(fresh.link);
    const Opened again = open(executor, fresh.welcome->session);
    EXPECT_TRUE(again.welcome->resumed) << test.name;
    EXPECT_EQ(notices(executor, again), told) << test.name << ": until it is acknowledged";
    executor.say(again.link, Ack{.notices = 1});
    executor.host.link_down(again.link);
    EXPECT_TRUE(notices(executor, open(executor, fresh.welcome->session)).empty()) << test.name;
  }
}

TEST(SessionHost, HasNoNewsForWhoAsksForNoSession) {
  Executor executor;
  executor.host.resumed({"uid-1", 3, 5, 7}, executor.now, News{"recreated", "It is a new one."});
  EXPECT_TRUE(notices(executor, open(executor)).empty());
  EXPECT_EQ(notices(executor, open(executor, std::string(32, 'a'))).at(0).kind, "recreated")
      << "of a session of before this executor";
  EXPECT_EQ(open(executor, std::string(32, 'a')).welcome->why, NotResumed::kLost);
  executor.host.resumed({"uid-1", 3, 6, 7}, executor.now);
  EXPECT_EQ(notices(executor, open(executor, std::string(32, 'a'))).at(0).kind, "lost")
      << "that was another move's";
}

TEST(SessionHost, RemembersHowSoManySessionsEnded) {
  Executor executor;
  std::vector<std::string> ended;
  for (int i = 0; i < 65; ++i) {
    const Opened opened = open(executor);
    ended.push_back(opened.welcome->session);
    executor.say(opened.link, Close{CloseReason::kEnd});
    executor.host.link_down(opened.link);
  }
  const auto says = [&](const std::string& session) {
    return notices(executor, open(executor, session)).at(0).message;
  };
  EXPECT_NE(says(ended[1]).find("ended by its client"), std::string::npos);
  EXPECT_EQ(says(ended[0]).find("ended by its client"), std::string::npos);
}

TEST(SessionHost, ALinkLivesUntilItsTokenEnds) {
  Executor executor;
  const Opened opened = open(executor);
  const auto live = [&](base::Milliseconds time) {
    for (base::Milliseconds passed{}; passed < time; passed += seconds(10)) {
      executor.say(opened.link, Pong{});
      executor.pass(seconds(10));
    }
  };
  live(minutes(20));
  EXPECT_FALSE(executor.host.over(opened.link)) << "15 min and 5 min slack";
  live(seconds(10));
  EXPECT_EQ(executor.closed(opened.link), CloseReason::kExpired);
  EXPECT_EQ(executor.host.sessions(), 1u);
}

Renew renewal(const Claims& claims, const Nonces& nonces) {
  const SplitToken token = *split_token(sign(claims, kKey));
  return {.claims = token.claims, .proof = link_proof(ProofOf::kRenewal, token.secret, nonces)};
}

TEST(SessionHost, RenewsWhatALinkMay) {
  Executor executor;
  const Opened opened = open(executor);
  executor.hear(opened.link);
  executor.pass(seconds(10));
  Claims claims = executor.claims();
  claims.ceiling = Ceiling::kReadOnly;
  executor.say(opened.link, renewal(claims, opened.nonces));
  EXPECT_EQ(executor.hear(opened.link),
            Message(Renewed{Ceiling::kReadOnly, milliseconds(minutes(15)).count()}));
  EXPECT_EQ(executor.host.ceiling(opened.welcome->session), Ceiling::kReadOnly);
  EXPECT_EQ(executor.host.newest_birth(), executor.now.wall);
}

TEST(SessionHost, RefusesARenewalThatIsNotItsOwn) {
  Executor executor;
  Claims older = executor.claims();
  older.run = 6;
  const struct {
    const char* name;
    Claims claims;
    bool other_nonces, shown;
  } cases[] = {
      {"anothers", executor.claims("another"), false, false},
      {"another_runs", older, false, false},
      {"another_links", executor.claims(), true, false},
      {"shown", executor.claims(), false, true},
  };
  for (const auto& test : cases) {
    const Opened opened = open(executor);
    const Nonces nonces = test.other_nonces ? Nonces{new_nonce(), new_nonce()} : opened.nonces;
    executor.say(opened.link, test.shown ? Renew{.token = "secret"} : renewal(test.claims, nonces));
    EXPECT_EQ(executor.closed(opened.link), CloseReason::kDenied) << test.name;
  }
}

TEST(SessionHost, AsksAfter20SecondsOfSilenceAndHangsUpAfter45) {
  Executor executor;
  const Opened opened = open(executor);
  executor.hear(opened.link);
  executor.pass(milliseconds(19'500));
  EXPECT_FALSE(executor.hear(opened.link));
  executor.pass(milliseconds(500));
  EXPECT_EQ(executor.hear(opened.link), Message(Ping{}));
  executor.pass(seconds(20));
  EXPECT_EQ(executor.hear(opened.link), Message(Ping{}));
  executor.pass(milliseconds(4'500));
  EXPECT_FALSE(executor.host.over(opened.link));
  executor.pass(milliseconds(500));
  EXPECT_EQ(executor.closed(opened.link), CloseReason::kSilent);
  EXPECT_EQ(executor.host.sessions(), 1u);
}

TEST(SessionHost, AnswersAPing) {
  Executor executor;
  const Opened opened = open(executor);
  executor.hear(opened.link);
  executor.say(opened.link, Ping{});
  executor.say(opened.link, Ping{});
  EXPECT_EQ(executor.hear(opened.link), Message(Pong{}));
  EXPECT_FALSE(executor.hear(opened.link)) << "who asks faster than it reads is answered once";
}

TEST(SessionHost, ACloseWithEndEndsTheSessionAtOnce) {
  Executor executor;
  const Opened opened = open(executor);
  executor.say(opened.link, Close{CloseReason::kEnd});
  EXPECT_EQ(ends(executor), std::vector{SessionEnd::kByClient});
  EXPECT_EQ(executor.host.sessions(), 0u);
  const Opened broken = open(executor);
  executor.say(broken.link, Close{CloseReason::kProtocol, "a gap"});
  EXPECT_EQ(ends(executor), std::vector{SessionEnd::kBroken});
  const Opened other = open(executor);
  executor.say(other.link, Close{CloseReason::kSilent});
  EXPECT_TRUE(ends(executor).empty());
  EXPECT_EQ(executor.host.sessions(), 1u);
}

TEST(SessionHost, HandsOnWhatASessionAsksAndCutsWhoBreaksTheRules) {
  Executor executor;
  const Opened opened = open(executor);
  executor.say(opened.link, Resume{.link = opened.welcome->link});
  executor.say(opened.link, Request{.id = 1, .op = "look"});
  const auto events = executor.host.take_events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].session, opened.welcome->session);
  executor.host.find(opened.welcome->session)->reply(1, base::Json::object());
  executor.hear(opened.link);
  EXPECT_EQ(executor.hear(opened.link), Message(Reply{.id = 1, .ok = base::Json::object()}));
  executor.say(opened.link, Hello{});
  EXPECT_EQ(executor.closed(opened.link), CloseReason::kProtocol);
  executor.say(opened.link, Request{.id = 2, .op = "look"});
  EXPECT_EQ(executor.host.take_events().size(), 1u) << "nothing is read after a close";
  EXPECT_EQ(executor.host.sessions(), 0u) << "nobody knows what is true of its session";
}

}  // namespace
}  // namespace wire
