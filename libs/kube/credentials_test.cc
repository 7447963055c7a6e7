#include "libs/kube/credentials.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <thread>

#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/base/testing/eventually.h"
#include "libs/base/testing/fake_clock.h"
#include "libs/base/testing/temporary_folder.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using base::ErrorCode;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kV1 = "client.authentication.k8s.io/v1";
constexpr const char* kCanary = "canary-that-nobody-may-see";

std::string credential(const std::string& status) {
  return R"({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", "status": )" +
         status + "}";
}

ExecPlugin shell(const std::string& script) {
  return {.api_version = kV1, .command = "sh", .args = {"-c", script}};
}

base::Result<PluginAnswer> run(const ExecPlugin& plugin, base::Milliseconds timeout = 20s,
                               std::stop_token stop = {}) {
  return run_plugin(plugin, {.server = "https://api.test"}, timeout, std::move(stop));
}

// --- A plugin's run.

TEST(ExecPlugin, IsGivenItsVariablesAndWhatItIsAskedFor) {
  ExecPlugin plugin = shell("printf '" + credential(R"({"token": "%s"})") +
                            "' \"$GIVEN-$(echo $KUBERNETES_EXEC_INFO | tr -d '\"{}')\"");
  plugin.env = {{"GIVEN", "a"}};
  const auto answer = run(plugin);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->token,
            "a-apiVersion:client.authentication.k8s.io/v1,kind:ExecCredential,spec:interactive:"
            "false");

  plugin.provide_cluster_info = true;
  EXPECT_THAT(run(plugin)->token, HasSubstr("spec:cluster:server:https://api.test,interactive"));
}

TEST(ExecPlugin, SaysHowItFailedButNotWhatItPrinted) {
  ExecPlugin plugin = shell("echo " + std::string(kCanary) + "; echo please log in >&2; exit 3");
  plugin.install_hint = "see the handbook";
  const auto answer = run(plugin);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error(), base::error(ErrorCode::kUnavailable,
                                        "the credential plugin sh ended with 3: please log in; see "
                                        "the handbook"));
  EXPECT_EQ(run(shell("kill -9 $$")).error().message,
            "the credential plugin sh was killed by signal 9");
  EXPECT_EQ(run({.api_version = kV1, .command = "no-such-plugin", .install_hint = "install it"})
                .error()
                .message,
            "the credential plugin no-such-plugin cannot be run: No such file or directory; "
            "install it");
}

TEST(ExecPlugin, IsBoundedInWhatItPrints) {
  EXPECT_THAT(run(shell("yes")).error().message, HasSubstr("printed more than 1048576 bytes"));
  EXPECT_THAT(run(shell("yes >&2"), 200ms).error().message, HasSubstr("took longer than 200 ms"));
}

bool is_alive(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  return std::getline(stat, line) && line.find(") Z ") == std::string::npos;
}

pid_t pid_in(const std::filesystem::path& file) {
  pid_t pid = 0;
  EXPECT_TRUE(base::eventually([&] {
    const auto text = base::read_file(file);
    pid = static_cast<pid_t>(text ? base::parse_integer(base::trim(*text)).value_or(0) : 0);
    return pid > 0;
  }));
  return pid;
}

TEST(ExecPlugin, DiesWithAllThatItStartedWhenItTakesTooLongOrIsStopped) {
  const base::TemporaryFolder folder;
  const auto script = [&](const char* name) {
    return shell("sleep 1000 & echo $! > " + (folder / name).string() + "; wait");
  };
  const auto late = run(script("late"), 300ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message, "the credential plugin sh took longer than 300 ms");
  const pid_t left = pid_in(folder / "late");
  EXPECT_TRUE(base::eventually([&] { return !is_alive(left); }));

  std::stop_source stop;
  pid_t child = 0;
  std::jthread stopper([&] {
    child = pid_in(folder / "stopped");
    stop.request_stop();
  });
  const auto stopped = run(script("stopped"), 60s, stop.get_token());
  stopper.join();
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  EXPECT_TRUE(base::eventually([&] { return !is_alive(child); }));
}

TEST(ExecPlugin, IsNotWaitedForByWhatItLeftBehind) {
  const base::TemporaryFolder folder;
  const auto answer = run(shell("sleep 1000 & echo $! > " + (folder / "pid").string() + "; echo '" +
                                credential(R"({"token": "t"})") + "'"));
  ASSERT_TRUE(answer) << answer.error().message;
  ::kill(pid_in(folder / "pid"), SIGKILL);
}

TEST(ExecPlugin, ReadsItsAnswer) {
  const ExecPlugin plugin{.api_version = kV1, .command = "login"};
  const auto read = [&](const std::string& text) { return read_plugin_answer(plugin, text); };
  const auto whole = read(credential(
      R"({"token": "t", "clientCertificateData": "C", "clientKeyData": "K",
          "expirationTimestamp": "1970-01-01T00:01:00Z"})"));
  ASSERT_TRUE(whole);
  EXPECT_EQ(*whole, (PluginAnswer{"t", "C", "K", base::WallTime(60s)}));

  const struct {
    std::string printed, message;
  } kCases[] = {
      {"", "did not print an ExecCredential"},
      {R"({"kind": "Pod"})", "did not print an ExecCredential"},
      {R"({"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1"})",
       "answered in another version than client.authentication.k8s.io/v1"},
      {credential("null"), "printed no status"},
      {credential("{}"), "printed neither a token nor a certificate"},
      {credential(R"({"token": "a\nb"})"), "printed a token with a line break"},
      {credential(R"({"clientKeyData": "k"})"),
       "printed a certificate without its key, or a key without its certificate"},
      {credential(R"({"token": "t", "expirationTimestamp": "soon"})"),
       "printed an expirationTimestamp that is no time"},
  };
  for (const auto& wrong : kCases) {
    const auto answer = read(wrong.printed);
    ASSERT_FALSE(answer) << wrong.printed;
    EXPECT_EQ(answer.error().message, "the credential plugin login " + wrong.message);
  }
}

// --- Credentials as they age.

class CredentialsTest : public testing::Test {
 protected:
  Credentials& with_plugin() {
    made_.emplace(Cluster{"https://api.test"}, User{.exec = ExecPlugin{kV1, "login"}}, clock_,
                  [this](const ExecPlugin&, const Cluster&, std::stop_token) {
                    ++runs_;
                    return answer_;
                  });
    return *made_;
  }
  Credentials& of(const User& user) {
    made_.emplace(Cluster{"https://api.test"}, user, clock_);
    return *made_;
  }
  std::string authorization() {
    const auto proof = made_->proof({});
    return proof ? proof->headers.find("Authorization").value_or("none") : proof.error().message;
  }

  base::FakeClock clock_;
  base::Result<PluginAnswer> answer_ = base::Error{ErrorCode::kUnavailable, "not yet"};
  int runs_ = 0;
  std::optional<Credentials> made_;
};

TEST_F(CredentialsTest, KeepsAPluginsAnswerUntilShortlyBeforeItExpires) {
  with_plugin();
  answer_ = PluginAnswer{"first", "C", "K", clock_.wall() + 60s};
  EXPECT_EQ(authorization(), "Bearer first");
  EXPECT_EQ(made_->proof({})->certificate, "C");
  clock_.advance(49s);
  answer_ = PluginAnswer{.token = "second"};
  EXPECT_EQ(authorization(), "Bearer first");
  clock_.advance(1s);
  EXPECT_EQ(authorization(), "Bearer second");
  clock_.advance(24h);
  EXPECT_EQ(authorization(), "Bearer second");
  EXPECT_EQ(runs_, 2);
}

TEST_F(CredentialsTest, RestsAfterAPluginsFailure) {
  with_plugin();
  EXPECT_EQ(authorization(), "not yet");
  answer_ = PluginAnswer{.token = "t"};
  clock_.advance(kPluginRest - 1ms);
  EXPECT_EQ(authorization(), "not yet");
  EXPECT_EQ(runs_, 1);
  clock_.advance(1ms);
  EXPECT_EQ(authorization(), "Bearer t");
}

TEST_F(CredentialsTest, UsesAnAnswerThatStillHoldsWhenTheNextRunFails) {
  with_plugin();
  answer_ = PluginAnswer{.token = "t", .expires = clock_.wall() + 60s};
  EXPECT_EQ(authorization(), "Bearer t");
  answer_ = base::Error{ErrorCode::kUnavailable, "down"};
  clock_.advance(55s);
  EXPECT_EQ(authorization(), "Bearer t");
  EXPECT_EQ(runs_, 2);
  clock_.advance(5s);
  EXPECT_EQ(authorization(), "down");
}

TEST_F(CredentialsTest, AsksThePluginAgainWhenTheServerRefuses) {
  with_plugin();
  answer_ = PluginAnswer{.token = "first"};
  const auto proof = made_->proof({});
  answer_ = PluginAnswer{.token = "second"};
  made_->refused(*proof);
  // Not at once, lest a server that refuses everything keeps it running.
  EXPECT_EQ(authorization(), "Bearer first");
  clock_.advance(kPluginRest);
  EXPECT_EQ(authorization(), "Bearer second");
  // An old request's refusal says nothing of the new answer.
  made_->refused(*proof);
  clock_.advance(kPluginRest);
  EXPECT_EQ(authorization(), "Bearer second");
  EXPECT_EQ(runs_, 2);
}

TEST_F(CredentialsTest, ReadsATokenFileAgainWhenItChangesAndEachMinute) {
  const base::TemporaryFolder folder;
  const auto write = [&](const std::string& text) {
    ASSERT_TRUE(base::write_file_atomically(folder / "token", text, 0600));
  };
  of({.token = "spare", .token_file = folder / "token"});
  EXPECT_EQ(authorization(), "Bearer spare");
  write("first\n");
  EXPECT_EQ(authorization(), "Bearer first");
  write("second\n");
  EXPECT_EQ(authorization(), "Bearer second");

  // A change that leaves no trace but the text.
  const auto time = std::filesystem::last_write_time(folder / "token");
  std::ofstream(folder / "token") << "third!\n";
  std::filesystem::last_write_time(folder / "token", time);
  clock_.advance(kRereadAfter - 1ms);
  EXPECT_EQ(authorization(), "Bearer second");
  clock_.advance(1ms);
  EXPECT_EQ(authorization(), "Bearer third!");

  std::ofstream(folder / "token") << "fourth\n";
  std::filesystem::last_write_time(folder / "token", time);
  EXPECT_EQ(authorization(), "Bearer third!");
  made_->refused({});
  EXPECT_EQ(authorization(), "Bearer fourth");

  std::filesystem::remove(folder / "token");
  EXPECT_EQ(authorization(), "Bearer fourth");
}

TEST_F(CredentialsTest, SaysWhichFileHasNoToken) {
  const base::TemporaryFolder folder;
  of({.token_file = folder / "token"});
  EXPECT_EQ(authorization(),
            "cannot read " + (folder / "token").string() + ": No such file or directory");
  std::ofstream(folder / "token") << kCanary << "\nx\n";
  EXPECT_EQ(authorization(), (folder / "token").string() + " holds no token on one line");
}

TEST_F(CredentialsTest, ReadsAClientsCertificateAgain) {
  const base::TemporaryFolder folder;
  std::ofstream(folder / "c") << "one";
  std::ofstream(folder / "k") << "key";
  of({.certificate = {.file = folder / "c"}, .key = {.file = folder / "k"}});
  EXPECT_EQ(*made_->proof({}), (Proof{{}, "one", "key"}));
  ASSERT_TRUE(base::write_file_atomically(folder / "c", "two", 0600));
  EXPECT_EQ(made_->proof({})->certificate, "two");
}

TEST_F(CredentialsTest, ProvesUsByPasswordAndActsForOthers) {
  of({.username = "jane",
      .password = "secret",
      .impersonation = {"bob", "7", {"a", "b"}, {{"example.com/why", {"x"}}}}});
  EXPECT_EQ(made_->proof({})->headers,
            (net::Headers{{"Authorization", "Basic amFuZTpzZWNyZXQ="},
                          {"Impersonate-User", "bob"},
                          {"Impersonate-Uid", "7"},
                          {"Impersonate-Group", "a"},
                          {"Impersonate-Group", "b"},
                          {"Impersonate-Extra-example.com%2Fwhy", "x"}}));
}

}  // namespace
}  // namespace kube
