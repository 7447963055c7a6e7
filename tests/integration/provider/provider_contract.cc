// The contract of every cloud, and of envd's client, against a running provider: E2B_API_URL,
// E2B_SANDBOX_URL and E2B_API_KEY say where it is, as they do for the official SDKs.

#include <gtest/gtest.h>

#include <cstdlib>

#include "libs/base/testing/eventually.h"
#include "libs/e2b/client.h"
#include "libs/e2b/testing/cloud_contract.h"
#include "libs/envd/client.h"
#include "libs/net/curl_transport.h"

namespace e2b {
namespace {

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

struct ProviderWorld final : CloudWorld {
  Cloud& cloud() override { return client_; }
  bool eventually(const std::function<bool()>& fact, base::Seconds patience) override {
    return base::eventually(fact, patience);
  }

  std::unique_ptr<net::Transport> transport_ = net::curl_transport({.proxy = ""});
  base::SystemClock clock_;
  Client client_{*transport_, clock_, {.api_url = setting("E2B_API_URL"), .api_key = [] {
                                         return base::Result<std::string>(setting("E2B_API_KEY"));
                                       }}};
};

INSTANTIATE_TEST_SUITE_P(All, CloudContract,
                         testing::Values(CloudKind{
                             "Provider", [] { return std::make_unique<ProviderWorld>(); }}),
                         [](const auto& info) { return info.param.name; });

TEST(Provider, DeniesAWrongKey) {
  ProviderWorld world;
  Client stranger(*world.transport_, world.clock_,
                  {setting("E2B_API_URL"), [] { return std::string("e2b_00"); }});
  EXPECT_EQ(stranger.get("i1", {}).error().code, base::ErrorCode::kDenied);
  EXPECT_EQ(stranger.create({.template_id = "base"}, {}).error().kind,
            CreateFailure::Kind::kRefused);
}

TEST(Provider, RepliesOnceToOneIdempotencyKey) {
  ProviderWorld world;
  const NewSandbox wanted{
      .template_id = "base", .timeout = base::Seconds(60), .idempotency_key = base::random_hex(16)};
  const auto first = world.cloud().create(wanted, {});
  const auto second = world.cloud().create(wanted, {});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->id, second->id);
  ASSERT_TRUE(world.cloud().kill(first->id, {}));
}

TEST(Provider, ListsMoreThanOnePageHolds) {
  ProviderWorld world;
  const std::string uid = base::random_hex(8);
  std::vector<std::string> made;
  for (int i = 0; i < 3; ++i) {
    const auto handle = world.cloud().create(
        {.template_id = "base", .timeout = base::Seconds(60), .metadata = {{"sandfleet.uid", uid}}},
        {});
    ASSERT_TRUE(handle) << handle.error().message;
    made.push_back(handle->id);
  }
  const auto all = world.cloud().list({{{"sandfleet.uid", uid}}}, {});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->value.size(), made.size());
  EXPECT_TRUE(all->provider_time);
  for (const std::string& id : made) EXPECT_TRUE(world.cloud().kill(id, {}));
}

// --- A provider with three faults in store: a create and a pause whose replies are lost, and a
// kill that takes effect after its caller gave up.

TEST(Misfortune, LeavesInDoubtWhatALookThenSettles) {
  ProviderWorld world;
  const Filter ours{{{"sandfleet.uid", base::random_hex(8)}}};
  const auto made = world.cloud().create(
      {.template_id = "base", .timeout = base::Seconds(120), .metadata = ours.metadata}, {});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, CreateFailure::Kind::kAmbiguous) << made.error().message;
  const auto listed = [&] {
    const auto all = world.cloud().list(ours, {});
    return all ? all->value : std::vector<SandboxInfo>();
  };
  ASSERT_TRUE(world.eventually([&] { return listed().size() == 1; }, base::Seconds(20)));
  const std::string id = listed()[0].id;

  // Sent once: a second one, unasked, would have been answered "paused already".
  const auto paused = world.cloud().pause(id, {});
  ASSERT_FALSE(paused);
  EXPECT_EQ(paused.error().code, base::ErrorCode::kUnavailable) << paused.error().message;
  EXPECT_TRUE(world.eventually(
      [&] {
        const auto all = listed();
        return all.size() == 1 && all[0].state == State::kPaused;
      },
      base::Seconds(20)));
  EXPECT_EQ(*world.cloud().pause(id, {}), PauseAnswer::kAlreadyPaused);

  EXPECT_FALSE(world.cloud().kill(id, {}));
  EXPECT_TRUE(world.eventually(
      [&] {
        const auto seen = world.cloud().get(id, {});
        return seen && !seen->value;
      },
      base::Seconds(20)));
  EXPECT_TRUE(listed().empty());
}

// --- Inside a sandbox.

using envd::Routing;

class Inside : public testing::TestWithParam<Routing> {
 protected:
  void SetUp() override {
    const auto made =
        world_.cloud().create({.template_id = "base", .timeout = base::Seconds(120)}, {});
    ASSERT_TRUE(made) << made.error().message;
    handle_ = *made;
    std::string url = setting("E2B_SANDBOX_URL");
    // Names under localhost are this machine, so that a label can stand before it.
    if (GetParam() == Routing::kSubdomain) url.replace(url.find("127.0.0.1"), 9, "localhost");
    client_ = std::make_unique<envd::Client>(
        *world_.transport_, clock_,
        envd::route_to({url, GetParam()}, handle_.id, envd::kEnvdPort, handle_.envd_access_token,
                       handle_.traffic_access_token),
        envd::ClientOptions{.envd_version = handle_.envd_version});
  }
  void TearDown() override {
    if (!handle_.id.empty()) (void)world_.cloud().kill(handle_.id, {});
  }
  envd::Finished run(std::vector<std::string> argv, std::string user = "") {
    const auto finished = client_->run({.argv = std::move(argv), .user = std::move(user)},
                                       base::Milliseconds(20'000), {});
    EXPECT_TRUE(finished) << finished.error().message;
    return finished ? *finished : envd::Finished{.exit_code = -2};
  }

  const base::SystemClock clock_;
  ProviderWorld world_;
  Handle handle_;
  std::unique_ptr<envd::Client> client_;
};
INSTANTIATE_TEST_SUITE_P(All, Inside, testing::Values(Routing::kHeader, Routing::kSubdomain),
                         [](const auto& info) {
                           return info.param == Routing::kHeader ? "Header" : "Subdomain";
                         });

TEST_P(Inside, FilesAreWrittenReadAndLookedAt) {
  ASSERT_TRUE(client_->health({}));
  const std::string content = base::random_bytes(300'000);
  const std::string path = "/tmp/a/b/odd name%";
  const auto uploaded = client_->upload(path, content, "root", {});
  ASSERT_TRUE(uploaded) << uploaded.error().message;
  const auto read = client_->download(path, "root", {});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(*read == content);

  const auto file = client_->stat(path, "root", {});
  ASSERT_TRUE(file && *file);
  EXPECT_EQ((*file)->size, content.size());
  EXPECT_EQ((*file)->owner, "root");
  EXPECT_FALSE((*file)->is_folder);
  EXPECT_TRUE((*client_->stat("/tmp/a", "root", {}))->is_folder);
  EXPECT_EQ(*client_->stat("/tmp/none", "root", {}), std::nullopt);
  EXPECT_EQ(client_->download("/tmp/none", "root", {}).error().code, base::ErrorCode::kNotFound);
}

TEST_P(Inside, CommandsRunToTheirEnds) {
  const auto both = run({"/bin/sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(both.exit_code, 3);
  EXPECT_EQ(both.output, "out\n");
  EXPECT_EQ(both.error_output, "err\n");
  EXPECT_EQ(run({"whoami"}).output, "user\n");
  EXPECT_EQ(run({"id", "-u"}, "root").output, "0\n");
  EXPECT_EQ(run({"no-such-program"}).exit_code, 127);
  EXPECT_EQ(run({"/bin/sh", "-c", "kill -9 $$"}).exit_code, -1);
  const auto much = run({"/bin/sh", "-c", "head -c 3000000 /dev/zero"});
  EXPECT_TRUE(much.cut);
  EXPECT_EQ(much.output.size(), envd::kOutputBytesMax);
}

TEST_P(Inside, ACommandDiesAtItsLimit) {
  const auto late = client_->run({.argv = {"sleep", "600"}}, base::Milliseconds(300), {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, base::ErrorCode::kUnavailable);
  EXPECT_TRUE(world_.eventually([&] { return run({"pgrep", "-x", "sleep"}).exit_code != 0; },
                                base::Seconds(10)));
}

TEST_P(Inside, AStartedProcessIsHeardGetsItsInputAndLivesOn) {
  const std::string input = base::to_hex(base::random_bytes(50'000));
  std::uint32_t pid = 0;
  const auto left = client_->start(
      {.argv = {"/bin/sh", "-c",
                "echo waiting; head -c 100000 >/tmp/input; echo done; exec sleep 600"}},
      base::Milliseconds(20'000),
      [&](envd::Started& process) -> base::Result<envd::Next> {
        if (process.output() == "waiting\n" && pid == 0) {
          pid = process.pid();
          // Others are asked meanwhile.
          EXPECT_EQ(run({"kill", "-0", std::to_string(pid)}).exit_code, 0);
          CHECK_OK(process.write(input));
        }
        return process.output().ends_with("done\n") ? envd::Next::kLeave : envd::Next::kListen;
      },
      {});
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_FALSE(*left);
  EXPECT_TRUE(*client_->download("/tmp/input", "", {}) == input);
  EXPECT_EQ(run({"kill", "-0", std::to_string(pid)}).exit_code, 0);

  const auto finished = client_->start(
      {.argv = {"/no/such/program"}}, base::Milliseconds(20'000),
      [](envd::Started&) -> base::Result<envd::Next> { return envd::Next::kListen; }, {});
  ASSERT_TRUE(finished && *finished);
  EXPECT_EQ((*finished)->exit_code, 127);
}

TEST_P(Inside, AWrongTokenIsDeniedAndAPausedSandboxIsNotRunning) {
  envd::Client stranger(*world_.transport_, clock_,
                        envd::route_to({setting("E2B_SANDBOX_URL"), Routing::kHeader}, handle_.id,
                                       envd::kEnvdPort, "wrong", {}),
                        {.envd_version = handle_.envd_version});
  EXPECT_EQ(stranger.stat("/tmp", "", {}).error().code, base::ErrorCode::kDenied);

  ASSERT_TRUE(world_.cloud().pause(handle_.id, {}));
  const auto health = client_->health({});
  ASSERT_FALSE(health);
  EXPECT_EQ(health.error().code, base::ErrorCode::kUnavailable);
  EXPECT_NE(health.error().message.find("not running"), std::string::npos)
      << health.error().message;
}

}  // namespace
}  // namespace e2b
