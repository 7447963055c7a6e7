#include <gtest/gtest.h>

#include "executor/sessions/testing/client.h"
#include "executor/testing/http.h"
#include "executor/testing/program.h"
#include "executor/testing/scratch.h"
#include "libs/aio/testing/run.h"
#include "libs/wire/frames/file_operations.h"

namespace executor {
namespace {

using testing::Client;

// The real program, told by its controller who it is; and a client of its sessions.
struct Site {
  Site()
      : program(
            {"run", "--port", "0", "--listen", "127.0.0.1", "--runtime-dir",
             folder.path().string()},
            wire::to_json(wire::StartSecrets{"uid-1", 3, testing::attach_key(), admin_key}).dump() +
                "\n"),
        client(loop.executor(), program.wait_until_serving().port) {
    const base::WallTime now = base::SystemClock().wall();
    const std::string token = wire::sign({.kind = wire::TokenKind::kAdmin,
                                          .uid = "uid-1",
                                          .epoch = 3,
                                          .issued = now,
                                          .expires = now + std::chrono::minutes(15)},
                                         admin_key);
    const wire::Resumed resumed{testing::identity(), now.time_since_epoch().count()};
    const auto told =
        request(client.port, "POST", "/v1/resumed", {{"Authorization", "Bearer " + token}},
                wire::to_json(resumed).dump());
    EXPECT_EQ(told.status, 200) << told.body;
  }

  const std::string admin_key = std::string(32, 'a');
  Scratch folder;
  Program program;
  aio::Loop loop;
  Client client;
};

aio::Task<> look_at_the_root(Site& site) {
  EXPECT_TRUE(site.client.session.ask(
      {.op = "fs.stat", .args = wire::to_json(wire::StatArgs{{.path = "/"}})}));
  co_await aio::race(Client::carry(site.client), Client::wait_for<wire::Answered>(site.client));
  const auto* answered = site.client.find<wire::Answered>();
  EXPECT_TRUE(answered);
  if (!answered) co_return;
  const auto looked = wire::from_json<wire::StatArgs::Ok>(answered->ok);
  EXPECT_TRUE(looked && looked->info && looked->info->type == wire::FileType::kDirectory);
  EXPECT_EQ(site.client.find<wire::Welcomed>()->welcome.incarnation,
            testing::identity().incarnation);
}
TEST(RunSessions, AnswersWhoHasAnAttachToken) { aio::testing::tell(look_at_the_root); }

}  // namespace
}  // namespace executor
