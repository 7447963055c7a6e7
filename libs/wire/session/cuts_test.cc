#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <set>

#include "libs/wire/proof.h"
#include "libs/wire/session/client_session.h"
#include "libs/wire/session/session_host.h"

// Both sides of a session over a link that is cut, at every frame and at random: every stream
// arrives exact to the byte, nothing that mutates acts twice, and nothing is left over on either
// side.
namespace wire {
namespace {

const std::string kKey = derive_key("fleet", TokenKind::kAttach, "uid-1", 3);

// The byte at each offset of a stream follows from its seed, so that one that is missing, doubled
// or another's is seen.
std::string pattern(std::uint32_t seed, std::int64_t from, std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint64_t>(from) + i;
    bytes[i] = static_cast<char>((at * 2654435761u + seed * 40503u) >> 13);
  }
  return bytes;
}

// What an executor does for sessions, in small. What it did to the world outlives it.
class Service {
 public:
  using Acts = std::map<std::string, int>;
  explicit Service(Acts& acts) : acts_(acts) {}

  void handle(SessionHost& host, HostEvent event) {
    ServedSession* session = host.find(event.session);
    const auto* what = std::get_if<SessionEvent>(&event.what);
    if (!session || !what) return;
    if (const auto* asked = std::get_if<Asked>(what))
      jobs_.push_back({session, asked->request.id, asked->request.op, asked->request.args});
    if (const auto* cancelled = std::get_if<Cancelled>(what))
      std::erase_if(jobs_, [&](const Job& job) { return job.id == cancelled->id; });
  }

  // Does a little of each thing that is to be done.
  void work(std::mt19937& random) {
    for (Job& job : jobs_)
      if (random() % 4 != 0) job.done = (this->*doing(job.op))(job);
    std::erase_if(jobs_, [](const Job& job) { return job.done; });
  }

 private:
  struct Job {
    ServedSession* session;
    std::uint32_t id;
    std::string op;
    base::Json args;
    std::int64_t at = 0;
    bool begun = false, done = false;

    std::string key() const { return args["key"]; }
    std::uint32_t seed() const { return args["seed"]; }
    std::int64_t bytes() const { return args["bytes"]; }
    std::uint32_t stream(const char* name) const { return args[name]; }
  };
  using Doing = bool (Service::*)(Job&);
  static Doing doing(const std::string& op) {
    if (op == "act") return &Service::act;
    if (op == "put") return &Service::put;
    if (op == "edit") return &Service::edit;
    if (op == "get") return &Service::get;
    if (op == "talk") return &Service::talk;
    return &Service::mirror;
  }

  bool act(Job& job) {
    ++acts_[job.key()];
    job.session->reply(job.id, {{"key", job.key()}});
    return true;
  }
  bool put(Job& job) {
    while (auto piece = job.session->take(job.id)) {
      EXPECT_EQ(piece->offset, job.at);
      EXPECT_EQ(piece->bytes, pattern(job.seed(), job.at, piece->bytes.size()));
      job.at += static_cast<std::int64_t>(piece->bytes.size());
      if (!piece->end) continue;
      EXPECT_EQ(job.at, job.bytes());
      return act(job);
    }
    return false;
  }
  bool edit(Job& job) {
    if (!job.session->reserve(job.id, static_cast<std::size_t>(job.bytes()) + 100)) {
      job.session->fail(job.id, failure(FailureCode::kRepliesFull, "later"));
      return true;
    }
    ++acts_[job.key()];
    job.session->reply_whole(job.id, {{"key", job.key()}},
                             pattern(job.seed(), 0, static_cast<std::size_t>(job.bytes())));
    return true;
  }
  bool get(Job& job) {
    if (!std::exchange(job.begun, true)) job.session->reply(job.id, base::Json::object());
    return produce(job, job.id, false);
  }
  bool mirror(Job& job) {
    if (!std::exchange(job.begun, true)) act(job);
    return produce(job, job.stream("out"), true);
  }
  bool produce(Job& job, std::uint32_t stream, bool may_skip) {
    const auto left = static_cast<std::size_t>(job.bytes() - job.at);
    std::size_t count = std::min<std::size_t>(left, 20'000);
    const std::size_t room = job.session->room(stream);
    if (room < count && may_skip) {
      job.session->skip(stream, static_cast<std::int64_t>(count));
    } else {
      count = std::min(count, room);
      job.session->append(stream, pattern(job.seed(), job.at, count));
    }
    job.at += static_cast<std::int64_t>(count);
    if (job.session->wants(stream) && job.at < job.bytes()) return false;
    job.session->end(stream);
    return true;
  }
  bool talk(Job& job) {  // What comes in goes out.
    if (!std::exchange(job.begun, true)) act(job);
    const std::uint32_t out = job.stream("out");
    const std::size_t room = job.session->room(out);
    if (room == 0) return !job.session->wants(out);
    const auto piece = job.session->take(job.stream("in"), room);
    if (!piece) return false;
    job.session->append(out, piece->bytes);
    if (piece->end) job.session->end(out);
    return piece->end;
  }

  Acts& acts_;
  std::deque<Job> jobs_;
};

// A stream as the client's user sees it.
struct Flow {
  std::uint32_t request = 0, seed = 0;
  std::int64_t bytes = 0, at = 0;
  bool may_skip = false, ended = false, lost = false;
};

class World {
 public:
  explicit World(std::uint32_t seed) : random_(seed), service_(std::make_unique<Service>(acts_)) {
    start_host();
    dial();
  }

  // What the client's user does: one of each kind, and more of those that are small.
  void ask_for_everything(std::int64_t bytes) {
    for (int i = 0; i < 5; ++i) ask_act();
    ask_stream("put", bytes);
    ask_stream("edit", bytes / 2);
    ask_stream("get", bytes);
    ask_stream("get", 100);
    ask_stream("talk", bytes);
    ask_stream("mirror", bytes);
  }
  void ask_act() { ask({.op = "act", .mutating = true}, 0); }
  void ask_stream(const std::string& op, std::int64_t bytes) {
    Call call{.op = op, .mutating = op != "get"};
    call.up = op == "put";
    call.down = op == "get" || op == "edit";
    if (op == "talk" || op == "mirror") {
      call.to_client = {client_.new_stream()};
      call.args["out"] = call.to_client[0];
    }
    if (op == "talk") {
      call.to_server = {client_.new_stream()};
      call.args["in"] = call.to_server[0];
    }
    ask(std::move(call), bytes);
  }

  void cut(bool seen_by_both = true) {
    to_host_.clear();
    to_client_.clear();
    client_.cut();
    if (seen_by_both) host_->link_down(link_);
    dial();
  }
  // Only the link behind whoever carries the frames is cut, who dials anew by itself and passes the
  // welcome on: what the client sent before it hears of that is dropped.
  void cut_behind() {
    if (session_.empty()) return;
    to_host_.clear();
    host_->link_down(link_);
    link_ = *host_->link_up(now_);
    const SplitToken token = *split_token(sign(claims(), kKey));
    Nonces nonces{new_nonce(), {}};
    carry(Hello{.session = session_, .claims = token.claims, .nonce = nonces.client});
    nonces.server = std::get<Challenge>(*to_message(*host_->next(link_))).nonce;
    carry(Prove{link_proof(ProofOf::kClient, token.secret, nonces)});
    Frame welcome = *host_->next(link_);
    until_resume_of_ = std::get<Welcome>(*to_message(welcome)).link;
    to_client_.push_back(encode(welcome));
  }
  // Another executor in the place of the one that was: nobody knows anything any more.
  void restart() {
    service_ = std::make_unique<Service>(acts_);
    start_host();
    restarted_ = true;
    cut();
  }

  // Everything moves a little; false when nothing is left to be done.
  bool step() {
    now_.moment += base::Milliseconds(1);
    if (++steps_ % 64 == 0) {
      now_.moment += base::Milliseconds(500);
      host_->tick(now_);
      client_.tick(now_.moment);
    }
    send();
    deliver();
    for (HostEvent& event : host_->take_events()) service_->handle(*host_, std::move(event));
    service_->work(random_);
    use();
    check_bounds();
    return !is_over();
  }
  void run() {
    for (int i = 0; i < 200'000; ++i)
      if (!step()) return;
    ADD_FAILURE() << "it does not come to an end: " << client_.waiting() << " wait, "
                  << client_.streams_open() << " streams";
  }
  std::size_t frames() const { return frames_; }
  std::mt19937& random() { return random_; }

  // What must be true when all is done.
  void check_outcomes() {
    for (const auto& [key, id] : keys_) {
      const int acted = acts_.contains(key) ? acts_.at(key) : 0;
      const auto& outcomes = outcomes_[id];
      ASSERT_EQ(outcomes.size(), 1u) << key << " is answered once";
      if (!outcomes[0]) {
        EXPECT_EQ(acted, 1) << key;
      } else if (*outcomes[0] == FailureCode::kOutcomeUnknown) {
        EXPECT_TRUE(restarted_) << key;
        EXPECT_LE(acted, 1) << key;
      } else {
        ADD_FAILURE() << key << ": " << to_word(*outcomes[0]);
      }
    }
    for (const auto& [id, flow] : flows_) {
      EXPECT_TRUE(flow.ended) << id;
      if (flow.lost)
        EXPECT_TRUE(restarted_) << id;
      else
        EXPECT_EQ(flow.at, flow.bytes) << id;
    }
  }
  void check_nothing_is_left() {
    const ServedSession* served = host_->find(session_);
    ASSERT_TRUE(served);
    EXPECT_EQ(served->unanswered(), 0u);
    EXPECT_EQ(served->replies_kept(), 0u);
    EXPECT_EQ(served->streams_open(), 0u);
    EXPECT_EQ(served->stream_bytes_held(), 0u);
    EXPECT_EQ(client_.waiting(), 0u);
    EXPECT_EQ(client_.streams_open(), 0u);
  }

 private:
  void start_host() {
    host_ = std::make_unique<SessionHost>(
        HostSettings{
            .instance = new_nonce(), .attach_key = kKey, .cwd = "/w", .workspace_root = "/w"},
        Identity{"uid-1", 3, 4, 7}, now_.moment);
  }
  Claims claims() const {
    return {.uid = "uid-1",
            .epoch = 3,
            .run = 7,
            .issued = now_.wall,
            .expires = now_.wall + std::chrono::hours(1)};
  }
  void carry(Message message) { host_->receive(link_, to_frame(std::move(message)), now_); }
  void dial() {
    until_resume_of_.clear();
    client_.dial(*split_token(sign(claims(), kKey)), new_nonce(), now_.moment);
    link_ = *host_->link_up(now_);
  }

  void ask(Call call, std::int64_t bytes) {
    const std::string key = call.op + std::to_string(keys_.size());
    const auto seed = static_cast<std::uint32_t>(keys_.size() + flows_.size() + 1);
    call.args["key"] = key;
    call.args["seed"] = seed;
    call.args["bytes"] = bytes;
    const bool skips = call.op == "mirror";
    const auto id = *client_.ask(call);
    if (call.mutating) keys_[key] = id;
    if (call.down) flows_[id] = {id, seed, bytes};
    for (const auto stream : call.to_client) flows_[stream] = {id, seed, bytes, 0, skips};
    if (call.up) uploads_[id] = {id, seed, bytes};
    for (const auto stream : call.to_server) uploads_[stream] = {id, seed, bytes};
  }

  void send() {
    while (to_host_.size() < 4)
      if (const auto frame = client_.next())
        to_host_.push_back(encode(*frame));
      else
        break;
    while (to_client_.size() < 4)
      if (const auto frame = host_->next(link_))
        to_client_.push_back(encode(*frame));
      else
        break;
  }
  void deliver() {
    const bool to_host_first = random_() % 2 == 0;
    for (const bool to_host : {to_host_first, !to_host_first}) {
      auto& queue = to_host ? to_host_ : to_client_;
      if (queue.empty() || random_() % 3 == 0) continue;
      Frame frame = **decode(queue.front());
      queue.pop_front();
      ++frames_;
      if (!to_host) {
        client_.receive(std::move(frame), now_.moment);
        continue;
      }
      if (!until_resume_of_.empty() && !resumes(frame)) continue;
      until_resume_of_.clear();
      host_->receive(link_, std::move(frame), now_);
    }
  }

  bool resumes(const Frame& frame) const {
    const auto message = *to_message(frame);
    const auto* resume = std::get_if<Resume>(&message);
    return resume && resume->link == until_resume_of_;
  }

  void use() {
    for (ClientEvent& event : client_.take_events()) {
      if (const auto* welcomed = std::get_if<Welcomed>(&event))
        session_ = welcomed->welcome.session;
      else if (const auto* answered = std::get_if<Answered>(&event))
        outcomes_[answered->id].emplace_back();
      else if (const auto* failed = std::get_if<Failed>(&event))
        fail(*failed);
      else if (const auto* closed = std::get_if<Closed>(&event))
        ADD_FAILURE() << "closed: " << closed->close.message;
    }
    for (auto& [id, flow] : flows_)
      if (random_() % 2 == 0) read(id, flow);
    for (auto& [id, upload] : uploads_) {
      if (upload.ended) continue;
      const auto left = static_cast<std::size_t>(upload.bytes - upload.at);
      const std::size_t count = std::min({client_.room(id), left, std::size_t{30'000}});
      client_.append(id, pattern(upload.seed, upload.at, count));
      upload.at += static_cast<std::int64_t>(count);
      upload.ended = upload.at == upload.bytes;
      if (upload.ended) client_.end(id);
    }
  }
  void fail(const Failed& failed) {
    outcomes_[failed.id].push_back(failed.failure.code);
    for (auto& [id, flow] : flows_)  // A failure ends all streams of its request.
      if (flow.request == failed.id) flow.ended = flow.lost = true;
  }
  void read(std::uint32_t id, Flow& flow) {
    const auto piece = client_.take(id, 1 + random_() % 50'000);
    if (!piece) return;
    ASSERT_FALSE(flow.ended) << id;
    if (flow.may_skip)
      ASSERT_GE(piece->offset, flow.at) << id;
    else
      ASSERT_EQ(piece->offset, flow.at) << id;
    ASSERT_EQ(piece->bytes, pattern(flow.seed, piece->offset, piece->bytes.size())) << id;
    flow.at = piece->offset + static_cast<std::int64_t>(piece->bytes.size());
    flow.ended = piece->end;
    flow.lost = piece->error.has_value();
    if (flow.lost) EXPECT_EQ(piece->error->code, FailureCode::kLost) << id;
  }

  bool is_over() const {
    if (client_.waiting() > 0 || client_.streams_open() > 0 || !to_host_.empty() ||
        !to_client_.empty())
      return false;
    for (const auto& [id, flow] : flows_)
      if (!flow.ended) return false;
    const ServedSession* served = host_->find(session_);
    // The last acknowledgements go with the next tick.
    return served && served->replies_kept() == 0 && served->streams_open() == 0;
  }
  void check_bounds() {
    ServedSession* served = host_->find(session_);
    if (!served) return;
    ASSERT_LE(served->replies_kept(), kRepliesMax);
    ASSERT_LE(served->reply_bytes_kept(), kReplyBytesMax);
    ASSERT_LE(served->unanswered(), kRequestsMax);
    const std::size_t most = kStreamsBytesMax + kStreamsMax * kStreamBytesAlways;
    ASSERT_LE(served->stream_bytes_held(), most + kReplyBytesMax);
    ASSERT_LE(client_.stream_bytes_held(), most);
  }

  std::mt19937 random_;
  Now now_{base::Moment(base::Seconds(1000)), base::WallTime(base::Seconds(1'800'000'000))};
  std::uint64_t steps_ = 0;
  std::size_t frames_ = 0;

  Service::Acts acts_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<SessionHost> host_;
  LinkId link_ = 0;
  std::deque<std::string> to_host_, to_client_;

  ClientSession client_{{.name = "test"}};
  std::string session_;
  std::map<std::string, std::uint32_t> keys_;  // Of mutating requests.
  std::map<std::uint32_t, std::vector<std::optional<FailureCode>>> outcomes_;
  std::map<std::uint32_t, Flow> flows_, uploads_;
  bool restarted_ = false;
  std::string until_resume_of_;  // Whoever carries the frames drops the client's until then.
};

TEST(Cuts, NothingIsLostOnALinkThatHolds) {
  World world(1);
  world.ask_for_everything(2'500'000);
  world.run();
  world.check_outcomes();
  world.check_nothing_is_left();
}

TEST(Cuts, AtEveryFrameNothingIsLostAndNothingDoneTwice) {
  World whole(2);
  whole.ask_for_everything(150'000);
  whole.run();
  const std::size_t frames = whole.frames();
  ASSERT_GT(frames, 50u);
  for (std::size_t at = 1; at <= frames; ++at) {
    World world(2);
    world.ask_for_everything(150'000);
    while (world.frames() < at && world.step()) {
    }
    world.cut();
    world.run();
    world.check_outcomes();
    world.check_nothing_is_left();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "cut at frame " << at << " of " << frames;
  }
}

TEST(Cuts, AtRandomAgainAndAgainNothingIsLostAndNothingDoneTwice) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    World world(seed);
    world.ask_for_everything(300'000);
    for (int cuts = 0; cuts < 40; ++cuts) {
      const auto steps = world.random()() % 60;
      for (std::size_t i = 0; i < steps; ++i) world.step();
      if (cuts % 5 == 0) world.ask_act();
      world.cut(world.random()() % 2 == 0);
    }
    world.run();
    world.check_outcomes();
    world.check_nothing_is_left();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(Cuts, BehindAnOpenLinkNothingIsLostAndNothingDoneTwice) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    World world(seed);
    world.ask_for_everything(300'000);
    for (int cuts = 0; cuts < 20; ++cuts) {
      const auto steps = 20 + world.random()() % 60;
      for (std::size_t i = 0; i < steps; ++i) world.step();
      if (cuts % 5 == 0) world.ask_act();
      world.cut_behind();
    }
    world.run();
    world.check_outcomes();
    world.check_nothing_is_left();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

TEST(Cuts, AnotherExecutorNeverActsOnWhatMayHaveBeenDone) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    World world(seed);
    world.ask_for_everything(200'000);
    const auto steps = world.random()() % 150;
    for (std::size_t i = 0; i < steps; ++i) world.step();
    world.restart();
    world.run();
    world.check_outcomes();
    world.check_nothing_is_left();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace wire
