#include <gtest/gtest.h>

#include <map>

#include "libs/wire/proof.h"
#include "libs/wire/session/client_session.h"
#include "libs/wire/session/session_host.h"

// An executor whose sandbox is set back to an earlier state without a word to anybody, or of which
// there are two: its client goes on where nothing was lost, and else notices before anything is
// done.
namespace wire {
namespace {

const std::string kKey = derive_key("fleet", TokenKind::kAttach, "uid-1", 3);

// Sessions, and what they have done to the world that is set back with them.
struct Sandbox {
  SessionHost host{
      HostSettings{.instance = "i-1", .attach_key = kKey, .cwd = "/w", .workspace_root = "/w"},
      Identity{"uid-1", 3, 4, 7}, base::Moment{}};
  std::map<std::string, int> acts;

  void work() {
    for (const HostEvent& event : host.take_events()) {
      ServedSession* session = host.find(event.session);
      const auto* what = std::get_if<SessionEvent>(&event.what);
      const auto* asked = session && what ? std::get_if<Asked>(what) : nullptr;
      if (asked) serve(*session, asked->request);
    }
  }
  void serve(ServedSession& session, const Request& request) {
    const std::string key = request.args.value("key", "");
    if (key == "never") return;
    if (request.seq) ++acts[key];
    session.reply(request.id, base::Json::object());
    if (request.down) session.append(request.id, "first bytes of many");
  }
};

class Chain {
 public:
  Chain() { dial(); }

  void dial() {
    const Claims claims{
        .uid = "uid-1", .epoch = 3, .run = 7, .expires = now.wall + std::chrono::hours(1)};
    sandbox.host.link_down(link_);
    client.dial(*split_token(sign(claims, kKey)), new_nonce(), now.moment);
    link_ = *sandbox.host.link_up(now);
    pump();
  }
  // Until nobody has anything to say.
  void pump() {
    for (bool news = true; news; sandbox.work()) {
      news = say();
      news = hear() || news;
    }
  }
  std::uint32_t ask(const std::string& key, bool mutating = true) {
    Call call{.op = "do", .args = {{"key", key}}, .mutating = mutating, .down = !mutating};
    const auto id = *client.ask(call);
    pump();
    return id;
  }
  // What became of requests, by their ids: true, it was done.
  std::map<std::uint32_t, bool> outcomes() {
    for (ClientEvent& event : client.take_events()) {
      if (const auto* answered = std::get_if<Answered>(&event)) outcomes_[answered->id] = true;
      if (const auto* failed = std::get_if<Failed>(&event)) outcomes_[failed->id] = false;
      if (const auto* welcomed = std::get_if<Welcomed>(&event))
        session_ = welcomed->welcome.session;
      if (auto* closed = std::get_if<Closed>(&event)) why = closed->close;
    }
    return outcomes_;
  }

  std::string session() {
    outcomes();
    return session_;
  }

  Now now{base::Moment(base::Milliseconds(1'000)), base::WallTime(base::Milliseconds(1'000'000))};
  Sandbox sandbox;
  ClientSession client{{.name = "test"}};
  std::optional<Close> why;

 private:
  bool say() {
    const auto frame = client.next();
    if (frame) sandbox.host.receive(link_, *frame, now);
    return frame.has_value();
  }
  bool hear() {
    const auto frame = sandbox.host.next(link_);
    if (frame) client.receive(*frame, now.moment);
    return frame.has_value();
  }

  LinkId link_ = 0;
  std::string session_;
  std::map<std::uint32_t, bool> outcomes_;
};

struct Case {
  const char* name;
  int acts_before, acts_after;  // The moment to which it is set back.
  bool reads_after, at_work_after;
  bool goes_on;
  bool only_looks = false;  // What is asked then.
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

const Case kCases[] = {
    {"at_once", 0, 0, false, false, true},
    {"nothing_since", 3, 0, false, false, true},
    {"one_asked_since_that_was_not_answered", 3, 0, false, true, true},
    {"one_answered_since", 3, 1, false, false, false},
    {"all_answered_since", 0, 2, false, false, false},
    {"answered_and_asked_since", 2, 2, false, true, false},
    {"bytes_received_since", 2, 0, true, false, false},
    {"one_answered_since_and_then_a_look", 2, 1, false, false, false, true},
};

class SetBack : public ::testing::TestWithParam<Case> {};

TEST_P(SetBack, ShowsBeforeAnythingIsDone) {
  const Case& test = GetParam();
  Chain chain;
  const auto reading = chain.ask("read", false);
  for (int i = 0; i < test.acts_before; ++i) chain.ask("before-" + std::to_string(i));
  const Sandbox earlier = chain.sandbox;

  for (int i = 0; i < test.acts_after; ++i) chain.ask("after-" + std::to_string(i));
  if (test.reads_after) {
    ServedSession* session = chain.sandbox.host.find(chain.session());
    ASSERT_TRUE(session);
    session->append(reading, ", and what came later");
    chain.pump();
  }
  if (test.at_work_after) chain.ask("never");
  chain.client.cut();
  chain.sandbox = earlier;
  const auto asked =
      *chain.client.ask({.op = "do", .args = {{"key", "next"}}, .mutating = !test.only_looks});
  chain.dial();

  const auto outcomes = chain.outcomes();
  if (test.goes_on) {
    EXPECT_FALSE(chain.why) << chain.why->message;
    EXPECT_TRUE(outcomes.at(asked));
    EXPECT_EQ(chain.sandbox.acts.at("next"), 1);
  } else {
    ASSERT_TRUE(chain.why);
    EXPECT_EQ(chain.why->reason, CloseReason::kProtocol);
    EXPECT_EQ(chain.sandbox.acts, earlier.acts);
  }
  for (const auto& [key, times] : chain.sandbox.acts) EXPECT_EQ(times, 1) << key;
}
INSTANTIATE_TEST_SUITE_P(, SetBack, ::testing::ValuesIn(kCases),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace wire
