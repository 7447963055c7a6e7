#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executor/admin/marker.h"
#include "executor/init/supervisor.h"
#include "executor/testing/http.h"
#include "executor/testing/program.h"
#include "executor/testing/scratch.h"
#include "libs/base/clock.h"
#include "libs/base/testing/eventually.h"
#include "libs/wire/admin.h"
#include "libs/wire/expiry.h"
#include "libs/wire/proof.h"
#include "libs/wire/token.h"

namespace executor {
namespace {

using base::Json;

const std::string kFleetKey(32, 'f');

std::string token(wire::TokenKind kind, const std::string& uid, std::int64_t epoch,
                  base::Milliseconds lives = std::chrono::minutes(15)) {
  const base::WallTime now = base::SystemClock().wall();
  const wire::Claims claims{
      .kind = kind, .uid = uid, .epoch = epoch, .issued = now, .expires = now + lives};
  return wire::sign(claims, wire::derive_key(kFleetKey, kind, uid, epoch));
}

const std::string kGood = token(wire::TokenKind::kAdmin, "uid-1", 2);

std::string secrets() {
  const auto key = [](wire::TokenKind kind) {
    return wire::derive_key(kFleetKey, kind, "uid-1", 2);
  };
  const wire::StartSecrets secrets{"uid-1", 2, key(wire::TokenKind::kAttach),
                                   key(wire::TokenKind::kAdmin)};
  return wire::to_json(secrets).dump() + "\n";
}

std::vector<std::string> arguments(const Scratch& folder, int port = 0) {
  return {"run",       "--port",        std::to_string(port),  "--listen",
          "127.0.0.1", "--runtime-dir", folder.path().string()};
}

Response ask(int port, const std::string& method, const std::string& path, const Json& body = {},
             const std::string& token = kGood) {
  Fields fields;
  if (!token.empty()) fields.emplace_back("Authorization", "Bearer " + token);
  return request(port, method, path, fields, body.is_null() ? "" : body.dump());
}

constexpr std::int64_t kToldMs = 4'000'000'000'000;  // Long after now.

Json resumed(const std::string& uid, std::int64_t epoch, std::int64_t run) {
  return wire::to_json(wire::Resumed{{uid, epoch, 1, run}, kToldMs});
}

TEST(Run, LetsInNobodyWithoutTheRightToken) {
  Scratch folder;
  Program program(arguments(folder), secrets());
  const int port = program.wait_until_serving().port;
  const std::pair<const char*, std::string> cases[] = {
      {"none", ""},
      {"garbage", "garbage"},
      {"attach_token", token(wire::TokenKind::kAttach, "uid-1", 2)},
      {"other_uid", token(wire::TokenKind::kAdmin, "uid-2", 2)},
      {"other_epoch", token(wire::TokenKind::kAdmin, "uid-1", 3)},
      {"expired", token(wire::TokenKind::kAdmin, "uid-1", 2, -std::chrono::minutes(10))},
  };
  for (const auto& [name, bad] : cases)
    for (const auto& [method, path] : {std::pair("GET", "/v1/health"),
                                       {"GET", "/v1/activity"},
                                       {"POST", "/v1/quiesce"},
                                       {"POST", "/v1/resumed"},
                                       {"GET", "/elsewhere"}}) {
      const auto answer = ask(port, method, path, {}, bad);
      EXPECT_EQ(answer.status, 401) << name << " " << path;
      EXPECT_TRUE(answer.json().contains("error")) << name << " " << path;
    }
  EXPECT_EQ(ask(port, "GET", "/v1/health").status, 200);
  EXPECT_EQ(ask(port, "GET", "/elsewhere").status, 404);
}

TEST(Run, ProvesItsAnswersToWhoAsksForIt) {
  Scratch folder;
  Program program(arguments(folder), secrets());
  const int port = program.wait_until_serving().port;
  const std::string key = wire::derive_key(kFleetKey, wire::TokenKind::kAdmin, "uid-1", 2);
  const auto ask_for_proof = [&](const wire::Question& question) {
    return request(port, question.method, question.path,
                   {{"Authorization", "Bearer " + kGood}, {wire::kNonceField, question.nonce}},
                   question.body);
  };
  const auto refused = ask_for_proof({"n-4", "POST", "/v1/resumed", resumed("uid-2", 2, 5).dump()});
  EXPECT_EQ(refused.status, 409);
  EXPECT_FALSE(refused.fields.contains("sandfleet-proof"));
  EXPECT_FALSE(ask(port, "GET", "/v1/health").fields.contains("sandfleet-proof"));

  const wire::Question proven[] = {{"n-1", "GET", "/v1/health", ""},
                                   {"n-5", "GET", "/v1/activity", ""},
                                   {"n-2", "POST", "/v1/quiesce", "{}"},
                                   {"n-3", "POST", "/v1/resumed", resumed("uid-1", 2, 5).dump()}};
  for (const auto& question : proven) {
    const auto answer = ask_for_proof(question);
    ASSERT_EQ(answer.status, 200) << answer.body;
    ASSERT_TRUE(answer.fields.contains("sandfleet-proof")) << question.path;
    EXPECT_TRUE(wire::is_proven(answer.fields.at("sandfleet-proof"), key, question, answer.body))
        << question.path;
  }
}

TEST(Run, IsToldTheTimeByWhoHasItsKey) {
  Scratch folder;
  Program program(arguments(folder), secrets());
  const int port = program.wait_until_serving().port;
  const std::string key = wire::derive_key(kFleetKey, wire::TokenKind::kAdmin, "uid-1", 2);
  ASSERT_EQ(ask(port, "POST", "/v1/resumed", resumed("uid-1", 2, 5)).status, 200);
  const wire::Question question{"n-1", "GET", "/v1/health", ""};
  const auto refused =
      request(port, "GET", "/v1/health",
              {{"Authorization", "Bearer " + kGood}, {wire::kNonceField, question.nonce}}, "");
  EXPECT_EQ(refused.status, 401);
  ASSERT_TRUE(refused.fields.contains("sandfleet-proof")) << refused.body;
  EXPECT_TRUE(wire::is_proven(refused.fields.at("sandfleet-proof"), key, question, refused.body));
  const auto its = wire::time_of_day_from_json(refused.json());
  ASSERT_TRUE(its) << refused.body;
  EXPECT_GE(its->now_ms, kToldMs);

  const base::WallTime its_time{base::Milliseconds(its->now_ms)};
  const base::WallTime now = base::SystemClock().wall();
  const base::Milliseconds ahead = its_time - now;
  const Json time = wire::to_json(wire::TimeOfDay{now.time_since_epoch().count()});
  EXPECT_EQ(ask(port, "POST", "/v1/time", time).status, 401) << "by a token that has ended";
  const auto by_its_clock = token(wire::TokenKind::kAdmin, "uid-1", 2, ahead);
  EXPECT_EQ(ask(port, "POST", "/v1/time", {{"nowMs", "noon"}}, by_its_clock).status, 400);
  EXPECT_EQ(ask(port, "POST", "/v1/time", time, by_its_clock).status, 200);
  EXPECT_EQ(ask(port, "GET", "/v1/health").status, 200);
}

TEST(Run, AQuiesceLapsesByItself) {
  Scratch folder;
  Program program(arguments(folder), secrets());
  const int port = program.wait_until_serving().port;
  const auto health = [&] {
    return *wire::health_from_json(ask(port, "GET", "/v1/health").json());
  };
  EXPECT_FALSE(health().quiesced);
  EXPECT_EQ(ask(port, "POST", "/v1/quiesce", {{"deadlineSeconds", 0}}).status, 400);
  const auto answer = ask(port, "POST", "/v1/quiesce", {{"deadlineSeconds", 1}});
  EXPECT_TRUE(answer.json().value("quiesced", false));
  EXPECT_TRUE(base::eventually([&] { return !health().quiesced; }));
}

TEST(Run, QuiescesOnlyWhatIdlesWhenItIsAskedTo) {
  Scratch folder;
  Program program(arguments(folder), secrets());
  const int port = program.wait_until_serving().port;
  const auto quiesced = [&](const Json& how) {
    return ask(port, "POST", "/v1/quiesce", how).json().value("quiesced", false);
  };
  const auto activity = wire::activity_from_json(ask(port, "GET", "/v1/activity").json());
  ASSERT_TRUE(activity) << activity.error().message;
  EXPECT_EQ(ask(port, "POST", "/v1/quiesce", {{"ifIdleForMs", -1}}).status, 400);
  EXPECT_FALSE(quiesced({{"ifIdleForMs", 3'600'000}}));
  EXPECT_FALSE(ask(port, "GET", "/v1/health").json().value("quiesced", true));
  EXPECT_TRUE(quiesced({{"ifIdleForMs", 0}}));
  EXPECT_TRUE(ask(port, "GET", "/v1/health").json().value("quiesced", false));
  EXPECT_FALSE(quiesced({{"ifIdleForMs", 3'600'000}})) << "who no longer idles goes on";
  EXPECT_FALSE(ask(port, "GET", "/v1/health").json().value("quiesced", true));
}

TEST(Run, ResumedThawsAndIsRememberedWhenTheWorkerDies) {
  Scratch folder;
  Program program(arguments(folder), secrets());
  const auto first = program.wait_until_serving();
  EXPECT_EQ(ask(first.port, "POST", "/v1/resumed", resumed("uid-1", 3, 5)).status, 409);
  EXPECT_EQ(ask(first.port, "POST", "/v1/resumed", resumed("uid-2", 2, 5)).status, 409);
  ASSERT_EQ(ask(first.port, "POST", "/v1/quiesce").status, 200);
  const auto answer = ask(first.port, "POST", "/v1/resumed", resumed("uid-1", 2, 5));
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto told = *wire::health_from_json(answer.json());
  EXPECT_EQ(told.identity, (wire::Identity{"uid-1", 2, 1, 5}));
  EXPECT_FALSE(told.quiesced);
  EXPECT_EQ(*Marker::open(folder / "marker")->read(), told.identity);

  ASSERT_EQ(::kill(first.pid, SIGKILL), 0);
  const auto second = program.wait_until_serving(2);
  const auto after = *wire::health_from_json(ask(second.port, "GET", "/v1/health").json());
  EXPECT_EQ(after.identity, told.identity);
  EXPECT_NE(after.instance, told.instance);
}

TEST(Run, AMarkerOfAnotherWorldIsNotBelieved) {
  Scratch folder;
  ASSERT_TRUE(Marker::open(folder / "marker")->write({"uid-1", 1, 7, 9}));
  Program program(arguments(folder), secrets());
  const int port = program.wait_until_serving().port;
  EXPECT_EQ(wire::health_from_json(ask(port, "GET", "/v1/health").json())->identity,
            (wire::Identity{"uid-1", 2, 0, 0}));
}

TEST(Run, RefusesToStartWithADistinctExitCode) {
  Scratch folder;
  Program holder(arguments(folder), secrets());
  const int port = holder.wait_until_serving().port;
  EXPECT_EQ(Program(arguments(folder), secrets()).wait_for_exit(), kExitLocked);

  Scratch open;
  ::chmod(open.path().c_str(), 0755);
  EXPECT_EQ(Program(arguments(open), secrets()).wait_for_exit(), kExitBadFolder);

  Scratch other;
  EXPECT_EQ(Program(arguments(other), "not secrets\n").wait_for_exit(), kExitBadSecrets);
  EXPECT_EQ(Program(arguments(other), "").wait_for_exit(), kExitBadSecrets);
  EXPECT_EQ(Program(arguments(other, port), secrets()).wait_for_exit(), kExitCannotListen);
}

TEST(Run, TellsItsStarterWhenItWaitsAndWhenItServes) {
  Scratch folder;
  Program program(arguments(folder), std::nullopt);
  ASSERT_TRUE(base::eventually([&] { return program.told() == "waiting\n"; })) << program.said();
  program.give(secrets());
  ASSERT_TRUE(base::eventually([&] { return program.told() == "waiting\nserving\n"; }));
  const auto serving = program.wait_until_serving();
  EXPECT_EQ(ask(serving.port, "GET", "/v1/health").status, 200);
}

TEST(Run, WaitsForNoSecretsWhereAnotherIsAtWork) {
  Scratch folder;
  Program holder(arguments(folder), secrets());
  holder.wait_until_serving();
  Program second(arguments(folder), std::nullopt);
  EXPECT_EQ(second.wait_for_exit(), wire::kExitTaken);
  EXPECT_EQ(second.told(), "");
}

TEST(Run, OneThatWaitsKeepsNobodyOut) {
  Scratch folder;
  Program waiting(arguments(folder), std::nullopt);
  ASSERT_TRUE(base::eventually([&] { return waiting.told() == "waiting\n"; }));
  Program program(arguments(folder), secrets());
  program.wait_until_serving();
  waiting.give(secrets());
  EXPECT_EQ(waiting.wait_for_exit(), wire::kExitTaken);
}

TEST(Run, IsNotDumpableWhileItWaitsForItsSecrets) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root sees whose a process is that nobody may look at";
  Scratch folder;
  ::chown(folder.path().c_str(), 65534, 65534);
  Program program(arguments(folder), std::nullopt, {},
                  {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  ASSERT_TRUE(base::eventually([&] { return program.told() == "waiting\n"; })) << program.said();
  struct stat memory{};
  ASSERT_EQ(::stat(("/proc/" + std::to_string(program.pid()) + "/mem").c_str(), &memory), 0);
  EXPECT_EQ(memory.st_uid, 0u) << "the kernel gives to root what others of its user may not read";
}

TEST(Run, LogsToItsFileWhatComesAfterTheSecrets) {
  Scratch folder;
  auto logging = arguments(folder);
  logging.insert(logging.end(), {"--log-file", folder / "executor.log"});
  Program program(logging, secrets());
  ASSERT_TRUE(base::eventually([&] { return program.told() == "waiting\nserving\n"; }));
  EXPECT_NE(folder.read("executor.log").find(" serving "), std::string::npos);
  EXPECT_EQ(program.said(), "");

  Scratch linked;
  std::filesystem::create_symlink("/dev/null", linked / "executor.log");
  auto misled = arguments(linked);
  misled.insert(misled.end(), {"--log-file", linked / "executor.log"});
  EXPECT_EQ(Program(misled, secrets()).wait_for_exit(), kExitBadFolder);
}

TEST(Run, SaysNoSecret) {
  Scratch folder;
  Program program(arguments(folder), secrets());
  const int port = program.wait_until_serving().port;
  ask(port, "GET", "/v1/health");
  const std::string said = program.said() + program.told();
  const auto json = Json::parse(secrets());
  EXPECT_EQ(said.find(json["adminKey"].get<std::string>()), std::string::npos);
  EXPECT_EQ(said.find(json["attachKey"].get<std::string>()), std::string::npos);
  EXPECT_EQ(said.find(kGood), std::string::npos);
}

}  // namespace
}  // namespace executor
