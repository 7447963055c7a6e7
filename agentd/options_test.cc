#include "agentd/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agentd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Options, BecomeWhatThePartsTake) {
  Options options;
  options.socket_mode = "0640";
  options.socket_group = "27";
  options.allow_uids = {"0", "1000"};
  options.allow_gids = {"root"};
  options.sandbox = "team-a/box";
  const auto settings = settings_of(options);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->door.rights.mode, 0640u);
  EXPECT_EQ(settings->door.rights.group, 27u);
  EXPECT_THAT(settings->door.allowed.uids, ElementsAre(0, 1000));
  EXPECT_THAT(settings->door.allowed.gids, ElementsAre(0));
  EXPECT_EQ(settings->usual, (wire::SandboxName{"team-a", "box"}));
}

TEST(Options, HaveASocketWhereHarnessesLook) {
  EXPECT_EQ(usual_socket(true, "/run/user/0"), "/run/sandfleet/agentd.sock");
  EXPECT_EQ(usual_socket(false, "/run/user/1000"), "/run/user/1000/sandfleet/agentd.sock");
  EXPECT_EQ(usual_socket(false, ""), "/run/sandfleet/agentd.sock");
}

TEST(Options, OfTheTcpListenerGoTogether) {
  Options options;
  options.way.state = "/state";
  EXPECT_FALSE(settings_of(options)->tcp);
  options.listen_address = "::";
  options.listen_port = 4711;
  options.tls_certificate = "/tls.pem";
  options.tls_key = "/key.pem";
  options.token_file = "/token";
  const auto settings = settings_of(options);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->tcp->port, 4711);
  EXPECT_EQ(settings->tcp->token, "/token");
  struct Case {
    void (*change)(Options&);
    const char* message;
  };
  const Case cases[] = {
      {[](Options& o) { o.listen_address = ""; }, "go with --listen-address"},
      {[](Options& o) { o.listen_address = "localhost"; }, "give an IPv4 or IPv6 address"},
      {[](Options& o) { o.tls_key = ""; }, "--tls-certificate and --tls-key"},
      {[](Options& o) { o.token_file = ""; }, "--client-ca or --token-file"},
      {[](Options& o) { o.way.state = ""; }, "harnesses show tokens of their own"},
  };
  for (const Case& one : cases) {
    Options changed = options;
    one.change(changed);
    const auto refused = settings_of(changed);
    ASSERT_FALSE(refused) << one.message;
    EXPECT_THAT(refused.error().message, HasSubstr(one.message));
  }
}

TEST(Options, AreRefusedWithWhatIsWrong) {
  struct Case {
    void (*change)(Options&);
    const char* message;
  };
  const Case cases[] = {
      {[](Options& o) { o.socket_mode = "rw"; }, "--socket-mode rw"},
      {[](Options& o) { o.socket_mode = "0888"; }, "--socket-mode 0888"},
      {[](Options& o) { o.socket_mode = "01777"; }, "--socket-mode 01777"},
      {[](Options& o) { o.socket_mode = ""; }, "--socket-mode"},
      {[](Options& o) { o.socket_group = "no-such-group"; }, "--socket-group no-such-group"},
      {[](Options& o) { o.allow_uids = {"root"}; }, "--allow-uid root"},
      {[](Options& o) { o.allow_uids = {"-1"}; }, "--allow-uid -1"},
      {[](Options& o) { o.allow_gids = {"4294967295"}; }, "--allow-gid 4294967295"},
      {[](Options& o) { o.sandbox = "box"; }, "NAMESPACE/NAME"},
      {[](Options& o) { o.sandbox = "/box"; }, "NAMESPACE/NAME"},
      {[](Options& o) { o.sandbox = "a/b/c"; }, "NAMESPACE/NAME"},
  };
  for (const Case& one : cases) {
    Options options;
    one.change(options);
    const auto settings = settings_of(options);
    ASSERT_FALSE(settings) << one.message;
    EXPECT_THAT(settings.error().message, HasSubstr(one.message));
  }
}

}  // namespace
}  // namespace agentd
