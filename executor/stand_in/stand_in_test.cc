#include "executor/stand_in/stand_in.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "executor/envd/connect.h"
#include "libs/aio/http_client.h"
#include "libs/aio/testing/run.h"
#include "libs/aio/testing/talk.h"
#include "libs/base/crypto.h"
#include "libs/wire/token.h"

namespace executor {
namespace {

using aio::testing::dial;
using aio::testing::hear_until;
using aio::testing::say;
using testing::AllOf;
using testing::HasSubstr;

struct Site {
  explicit Site(std::size_t executors_max = StandIn::kExecutorsMax)
      : stand_in(loop.executor(), clock, executors_max),
        envd(loop.executor(), [this](auto exchange) { return stand_in.serve_envd(exchange); }),
        executors(loop.executor(),
                  [this](auto exchange) { return stand_in.serve_executors(exchange); }),
        envd_port(*envd.listen("127.0.0.1", 0)),
        executors_port(*executors.listen("127.0.0.1", 0)) {}

  base::SystemClock clock;
  aio::Loop loop;
  StandIn stand_in;
  aio::HttpServer envd, executors;
  int envd_port, executors_port;
};

std::string key_of(const std::string& uid, wire::TokenKind kind, char fleet = 'f') {
  return wire::derive_key(std::string(32, fleet), kind, uid, 1);
}
std::string secrets_of(const std::string& uid, char fleet = 'f') {
  const wire::StartSecrets secrets{uid, 1, key_of(uid, wire::TokenKind::kAttach, fleet),
                                   key_of(uid, wire::TokenKind::kAdmin, fleet)};
  return base::to_text(wire::to_json(secrets)) + "\n";
}
std::string token_of(const std::string& uid, char fleet = 'f') {
  const base::WallTime now = base::SystemClock().wall();
  const wire::Claims claims{.kind = wire::TokenKind::kAdmin,
                            .uid = uid,
                            .epoch = 1,
                            .issued = now,
                            .expires = now + std::chrono::minutes(10)};
  return wire::sign(claims, key_of(uid, wire::TokenKind::kAdmin, fleet));
}
// As a line of a process's output travels.
std::string as_output(std::string_view line) { return base::to_base64(std::string(line) + "\n"); }

aio::Task<aio::HttpReply> ask(int port, aio::HttpRequest request) {
  auto stream = co_await dial(port);
  const auto reply =
      co_await aio::exchange(std::move(stream), std::move(request), aio::testing::kPatience);
  co_return reply ? *reply : aio::HttpReply{.status = 0, .body = reply.error().message};
}

aio::Task<aio::HttpReply> admin(Site& site, std::string method, std::string path, std::string token,
                                base::Json body = nullptr) {
  aio::HttpRequest request{.method = std::move(method),
                           .target = std::move(path),
                           .fields = {{"Authorization", "Bearer " + token}},
                           .body = body.is_null() ? "" : base::to_text(body)};
  co_return co_await ask(site.executors_port, std::move(request));
}

aio::Task<std::shared_ptr<aio::Stream>> start(Site& site, std::string program,
                                              std::vector<std::string> arguments) {
  const base::Json message = {{"process", {{"cmd", program}, {"args", arguments}}}};
  const std::string body = encode_envelope(0, base::to_text(message));
  auto stream = co_await dial(site.envd_port);
  co_await say(stream,
               "POST /process.Process/Start HTTP/1.1\r\nHost: x\r\nContent-Type: "
               "application/connect+json\r\nContent-Length: " +
                   std::to_string(body.size()) + "\r\n\r\n" + body);
  co_return stream;
}

aio::Task<int> give(Site& site, std::string pid, std::string line) {
  const base::Json message = {{"process", {{"pid", std::stoul(pid)}}},
                              {"input", {{"stdin", base::to_base64(line)}}}};
  aio::HttpRequest request{
      .method = "POST", .target = "/process.Process/SendInput", .body = base::to_text(message)};
  co_return (co_await ask(site.envd_port, std::move(request))).status;
}

// Starts an executor and gives it its keys: what its stream said after that, up to `mark`.
aio::Task<std::string> bring_to_life(Site& site, std::string secrets, std::string mark) {
  std::vector<std::string> arguments = {"run", "--runtime-dir", "/var/lib/sandfleet"};
  auto stream = co_await start(site, "/opt/sandfleet/bin/sandfleet-executor", std::move(arguments));
  const std::string heard = co_await hear_until(stream, as_output(wire::kWaitingLine));
  const auto at = heard.find("\"pid\":");
  if (at == std::string::npos) co_return heard;
  EXPECT_EQ(co_await give(site, heard.substr(at + 6, heard.find('}', at) - at - 6), secrets), 200);
  co_return co_await hear_until(stream, mark);
}
aio::Task<std::string> bring_to_life(Site& site, std::string secrets) {
  co_return co_await bring_to_life(site, std::move(secrets), as_output(wire::kServingLine));
}

aio::Task<> keeps_each_to_its_own_keys(Site& site) {
  EXPECT_THAT(co_await bring_to_life(site, secrets_of("uid-1")),
              HasSubstr(as_output(wire::kServingLine)));
  EXPECT_EQ((co_await admin(site, "GET", "/v1/health", token_of("uid-2"))).status, 401);
  co_await bring_to_life(site, secrets_of("uid-2"));
  const auto second = co_await admin(site, "GET", "/v1/health", token_of("uid-2"));
  EXPECT_EQ(second.status, 200) << second.body;
  EXPECT_THAT(second.body, HasSubstr("uid-2"));
  EXPECT_EQ((co_await admin(site, "GET", "/v1/health", token_of("uid-1", 'g'))).status, 401);
  EXPECT_EQ((co_await admin(site, "GET", "/v1/health", "garbage")).status, 401);

  const base::Json resumed = wire::to_json(wire::Resumed{{"uid-1", 1, 1, 4}, 1});
  EXPECT_EQ((co_await admin(site, "POST", "/v1/resumed", token_of("uid-1"), resumed)).status, 200);
  EXPECT_EQ((co_await admin(site, "POST", "/v1/resumed", token_of("uid-2"), resumed)).status, 409);
  const auto first = co_await admin(site, "GET", "/v1/health", token_of("uid-1"));
  EXPECT_THAT(first.body, HasSubstr("\"run\":4"));
}

TEST(StandIn, KeepsEachExecutorToItsOwnKeysAndIdentity) {
  aio::testing::tell(keeps_each_to_its_own_keys);
}

aio::Task<> starts_no_second_one(Site& site) {
  co_await bring_to_life(site, secrets_of("uid-1"));
  const base::Json resumed = wire::to_json(wire::Resumed{{"uid-1", 1, 1, 4}, 1});
  co_await admin(site, "POST", "/v1/resumed", token_of("uid-1"), resumed);
  EXPECT_THAT(co_await bring_to_life(site, secrets_of("uid-1"), "exited"),
              HasSubstr("\"exitCode\":" + std::to_string(wire::kExitTaken)));
  EXPECT_THAT((co_await admin(site, "GET", "/v1/health", token_of("uid-1"))).body,
              HasSubstr("\"run\":4"));
  // Other keys are those of a fleet that lost its key: a new executor.
  co_await bring_to_life(site, secrets_of("uid-1", 'g'));
  EXPECT_EQ((co_await admin(site, "GET", "/v1/health", token_of("uid-1"))).status, 401);
  EXPECT_THAT((co_await admin(site, "GET", "/v1/health", token_of("uid-1", 'g'))).body,
              HasSubstr("\"run\":0"));
}

TEST(StandIn, StartsNoSecondExecutorWithTheSameKeys) { aio::testing::tell(starts_no_second_one); }

aio::Task<> forgets_the_first(Site& site) {
  for (const char* uid : {"uid-1", "uid-2", "uid-3"}) co_await bring_to_life(site, secrets_of(uid));
  EXPECT_EQ((co_await admin(site, "GET", "/v1/health", token_of("uid-1"))).status, 401);
  EXPECT_EQ((co_await admin(site, "GET", "/v1/health", token_of("uid-2"))).status, 200);
  EXPECT_EQ((co_await admin(site, "GET", "/v1/health", token_of("uid-3"))).status, 200);
}

TEST(StandIn, ForgetsTheFirstOfTooMany) { aio::testing::tell(forgets_the_first, std::size_t{2}); }

aio::Task<> plays_what_root_does(Site& site) {
  std::vector<std::string> arguments = {"-c",   "true", "sandfleet",         "7",
                                        "path", "",     "/var/lib/sandfleet"};
  auto layout = co_await start(site, "/bin/sh", std::move(arguments));
  EXPECT_THAT(co_await hear_until(layout, "exited"),
              AllOf(HasSubstr(as_output("right")), HasSubstr("\"exitCode\":0")));
  std::vector<std::string> nothing;
  auto other = co_await start(site, "/usr/bin/id", std::move(nothing));
  EXPECT_THAT(co_await hear_until(other, "exited"), HasSubstr("\"exitCode\":127"));
}

TEST(StandIn, AnswersForRootAndRunsNothing) { aio::testing::tell(plays_what_root_does); }

aio::Task<> refuses_bad_secrets(Site& site) {
  EXPECT_THAT(co_await bring_to_life(site, "no secrets\n", "exited"), HasSubstr("\"exitCode\":5"));
  EXPECT_EQ(co_await give(site, "4711", "a line\n"), 404);
  std::vector<std::string> run = {"run"};
  auto stream = co_await start(site, "/x/sandfleet-executor", std::move(run));
  const std::string heard = co_await hear_until(stream, as_output(wire::kWaitingLine));
  const auto at = heard.find("\"pid\":") + 6;
  const std::string pid = heard.substr(at, heard.find('}', at) - at);
  const std::string flood(60'000, 'x');
  EXPECT_EQ(co_await give(site, pid, flood), 200);
  EXPECT_EQ(co_await give(site, pid, flood), 429) << "no line of secrets is so long";
  stream->close();
}

TEST(StandIn, RefusesWhatIsNoLineOfSecrets) { aio::testing::tell(refuses_bad_secrets); }

}  // namespace
}  // namespace executor
