#include "agentd/way/attach_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <vector>

#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"
#include "libs/base/files.h"
#include "libs/base/json.h"
#include "libs/base/testing/temporary_folder.h"
#include "libs/base/unix_socket.h"
#include "libs/net/server/http_server.h"

namespace agentd {
namespace {

using namespace std::chrono_literals;
using aio::testing::kPatience;
using aio::testing::tell;
using base::Json;
using testing::HasSubstr;

const wire::SandboxName kBox{"team-a", "box"};

Json way_to(const std::string& name) {
  return {{"namespace", "team-a"},
          {"name", name},
          {"uid", "u1"},
          {"epoch", 1},
          {"incarnation", 1},
          {"run", 1},
          {"endpoint", {{"url", "http://127.0.0.1:1"}, {"headers", Json::object()}}},
          {"token", "sf1.c.s"},
          {"expires", "2026-11-30T12:00:00Z"}};
}

// An attach service on threads of its own, as the controller's is. It knows one token, and holds
// questions back while it is told to.
class Service {
 public:
  net::ServedAnswer answer(const net::ServedRequest& request) {
    std::unique_lock lock(mutex_);
    asked_.push_back(request);
    changed_.notify_all();
    changed_.wait_for(lock, 20s, [&] { return !held_; });
    if (request.method != "POST" || !request.path.ends_with("/v1/attach")) return {404, ""};
    if (!request.peer && request.authorization != "Bearer t0k3n")
      return {403, R"({"reason":"Denied","message":"who are you"})"};
    return {200, base::to_text(way_to(Json::parse(request.body)["name"].get<std::string>()))};
  }
  net::ServedHandler handler() {
    return [this](const net::ServedRequest& request) { return answer(request); };
  }
  void hold(bool held) {
    std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  std::size_t asked() {
    std::lock_guard lock(mutex_);
    return asked_.size();
  }
  std::string last_path() {
    std::lock_guard lock(mutex_);
    return asked_.back().path;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<net::ServedRequest> asked_;
  bool held_ = false;
};

struct Site {
  std::unique_ptr<AttachClient> client_of(std::unique_ptr<Line> line,
                                          AttachClientSettings settings = {}) {
    return std::make_unique<AttachClient>(loop.executor(), std::move(line), settings);
  }

  aio::Loop loop;
  Names names{loop.executor()};
  const base::TemporaryFolder folder;
  Service service;
};

// The service at a Unix socket.
struct SocketSite : Site {
  SocketSite() {
    listener = *base::UnixListener::at(path, {});
    server = *net::HttpServer::start_on(*listener->share(), {}, service.handler());
  }
  std::unique_ptr<AttachClient> client(AttachClientSettings settings = {}) {
    return client_of(std::make_unique<SocketLine>(loop.executor(), path), settings);
  }

  const std::filesystem::path path = folder / "attach.sock";
  std::unique_ptr<base::UnixListener> listener;
  std::unique_ptr<net::HttpServer> server;
};

// The same over HTTPS.
struct SecureSite : Site {
  SecureSite() {
    server = *net::HttpServer::start({.identity = identity(authority)}, service.handler());
    believe(authority.certificate);
  }
  static base::Certified make_authority() {
    const auto now = base::SystemClock().wall();
    return *base::make_authority({"authority", {}, now - 1min, now + 1h});
  }
  static base::Certified identity(const base::Certified& authority) {
    const auto now = base::SystemClock().wall();
    return *base::issue(authority, {"attach", {"127.0.0.1"}, now - 1min, now + 1h});
  }
  void believe(const std::string& pem) {
    EXPECT_TRUE(base::write_file_atomically(authorities, pem, 0644));
  }
  std::unique_ptr<AttachClient> client(const std::string& prefix = "") {
    const std::string url = "https://127.0.0.1:" + std::to_string(server->port()) + prefix;
    return client_of(std::make_unique<SecureLine>(*place_of(url), authorities, names));
  }

  const base::Certified authority = make_authority();
  const std::filesystem::path authorities = folder / "ca.crt";
  std::unique_ptr<net::HttpServer> server;
};

std::string told(const Answer& answer) {
  const auto* refusal = std::get_if<NoWay>(&answer);
  return refusal ? refusal->message : "the way to " + std::get<Way>(answer).uid;
}

aio::Task<> ask_at_a_socket(SocketSite& site) {
  const auto client = site.client();
  EXPECT_EQ(told(co_await client->ask(kBox, std::nullopt, {})), "the way to u1");
  EXPECT_EQ(told(co_await client->ask(kBox, "t0k3n", {})), "the way to u1");
}
TEST(AttachClient, AsksAtASocket) { tell(ask_at_a_socket); }

aio::Task<> nobody_at_the_socket(SocketSite& site) {
  const auto client = site.client();
  site.server.reset();
  site.listener.reset();
  const Answer answer = co_await client->ask(kBox, std::nullopt, {});
  const auto* refusal = std::get_if<NoWay>(&answer);
  if (!refusal) co_return ADD_FAILURE() << "nobody was there to answer";
  EXPECT_EQ(refusal->why, wire::NoEntry::kUnavailable);
  EXPECT_EQ(refusal->retry_after, 1s);
  EXPECT_THAT(refusal->message, HasSubstr(site.path.string()));
}
TEST(AttachClient, TakesAnAbsentServiceForSilence) { tell(nobody_at_the_socket); }

aio::Task<> ask_over_https(SecureSite& site) {
  const auto client = site.client("/sandfleet/");
  EXPECT_EQ(told(co_await client->ask(kBox, "t0k3n", {})), "the way to u1");
  EXPECT_EQ(site.service.last_path(), "/sandfleet/v1/attach");
  const Answer refused = co_await client->ask(kBox, "other", {});
  EXPECT_EQ(std::get<NoWay>(refused).why, wire::NoEntry::kDenied);
  EXPECT_EQ(told(refused), "who are you");
}
TEST(AttachClient, AsksOverHttpsWithTheTokenOfTheHarness) { tell(ask_over_https); }

aio::Task<> authorities_that_change(SecureSite& site) {
  const auto client = site.client();
  site.believe(SecureSite::make_authority().certificate);
  const Answer stranger = co_await client->ask(kBox, "t0k3n", {});
  EXPECT_EQ(std::get<NoWay>(stranger).why, wire::NoEntry::kUnavailable);
  EXPECT_THAT(told(stranger), HasSubstr("certificate verify failed"));
  EXPECT_EQ(site.service.asked(), 0) << "the token is shown to no stranger";
  site.believe(site.authority.certificate);
  EXPECT_EQ(told(co_await client->ask(kBox, "t0k3n", {})), "the way to u1");
  site.believe("half a fi");
  EXPECT_EQ(told(co_await client->ask(kBox, "t0k3n", {})), "the way to u1") << "as it was before";
  std::filesystem::remove(site.authorities);
  EXPECT_EQ(told(co_await client->ask(kBox, "t0k3n", {})), "the way to u1") << "as it was before";
}
TEST(AttachClient, BelievesWhomItsFileOfAuthoritiesNames) { tell(authorities_that_change); }

aio::Task<> no_authorities(SecureSite& site) {
  const auto client = site.client();
  std::filesystem::remove(site.authorities);
  EXPECT_THAT(told(co_await client->ask(kBox, "t0k3n", {})), HasSubstr("ca.crt"));
}
TEST(AttachClient, NamesAFileOfAuthoritiesThatIsNotThere) { tell(no_authorities); }

aio::Task<> keep(AttachClient& client, wire::SandboxName sandbox, std::string token,
                 std::vector<std::string>& answers) {
  answers.push_back(told(co_await client.ask(std::move(sandbox), std::move(token), {})));
}

aio::Task<bool> until_asked(Service& service, std::size_t times) {
  while (service.asked() < times) co_await aio::sleep_for(1ms);
  co_return true;
}

aio::Task<> many_who_ask_the_same(SocketSite& site) {
  const auto client = site.client();
  site.service.hold(true);
  std::vector<std::string> answers;
  aio::TaskGroup group(site.loop.executor()), leaving(site.loop.executor());
  leaving.spawn(keep(*client, kBox, "t0k3n", answers));
  for (int i = 0; i < 9; ++i) group.spawn(keep(*client, kBox, "t0k3n", answers));
  group.spawn(keep(*client, {"team-a", "other"}, "t0k3n", answers));
  group.spawn(keep(*client, kBox, "an0ther", answers));
  EXPECT_TRUE(co_await aio::within(until_asked(site.service, 3), kPatience));
  leaving.cancel();  // Who began the question leaves; it goes on.
  co_await leaving.wait();
  site.service.hold(false);
  co_await group.wait();
  EXPECT_EQ(answers, std::vector<std::string>(11, "the way to u1"));
  EXPECT_EQ(site.service.asked(), 3);
  EXPECT_EQ(told(co_await client->ask(kBox, "t0k3n", {})), "the way to u1");
  EXPECT_EQ(site.service.asked(), 4) << "nothing is remembered";
}
TEST(AttachClient, PutsOneQuestionForAllWhoAskTheSame) { tell(many_who_ask_the_same); }

aio::Task<> too_many_questions(SocketSite& site) {
  const auto client = site.client({.questions_max = 2});
  site.service.hold(true);
  std::vector<std::string> answers;
  aio::TaskGroup group(site.loop.executor());
  group.spawn(keep(*client, kBox, "a", answers));
  group.spawn(keep(*client, kBox, "b", answers));
  EXPECT_TRUE(co_await aio::within(until_asked(site.service, 2), kPatience));
  const Answer third = co_await client->ask(kBox, "c", {});
  EXPECT_THAT(told(third), HasSubstr("too many questions"));
  EXPECT_EQ(std::get<NoWay>(third).retry_after, 1s);
  site.service.hold(false);
  co_await group.wait();
  EXPECT_EQ(told(co_await client->ask(kBox, "c", {})), "the way to u1");
}
TEST(AttachClient, HasSoManyQuestionsUnderWay) { tell(too_many_questions); }

aio::Task<> a_service_that_hangs(SocketSite& site) {
  const auto client = site.client({.patience = 50ms});
  site.service.hold(true);
  const Answer answer = co_await client->ask(kBox, std::nullopt, {});
  EXPECT_EQ(std::get<NoWay>(answer).why, wire::NoEntry::kUnavailable);
  site.service.hold(false);
}
TEST(AttachClient, WaitsForAnAnswerSoLong) { tell(a_service_that_hangs); }

aio::Task<> what_is_no_token(SocketSite& site) {
  const auto client = site.client();
  const Answer answer = co_await client->ask(kBox, "t0k3n\r\nX-Other: 1", {});
  EXPECT_EQ(std::get<NoWay>(answer).why, wire::NoEntry::kDenied);
  EXPECT_THAT(told(answer), Not(HasSubstr("t0k3n")));
  EXPECT_EQ(site.service.asked(), 0);
}
TEST(AttachClient, ShowsNothingThatIsNoToken) { tell(what_is_no_token); }

aio::Task<> too_long_an_answer(SocketSite& site) {
  site.server.reset();
  site.server = *net::HttpServer::start_on(*site.listener->share(), {}, [](const auto&) {
    return net::ServedAnswer{200, std::string(1u << 20, ' ')};
  });
  const auto client = site.client();
  EXPECT_THAT(told(co_await client->ask(kBox, std::nullopt, {})), HasSubstr("too large"));
}
TEST(AttachClient, ReadsNoAnswerWithoutEnd) { tell(too_long_an_answer); }

}  // namespace
}  // namespace agentd
