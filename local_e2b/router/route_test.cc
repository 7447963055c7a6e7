#include "local_e2b/router/route.h"

#include <gtest/gtest.h>

#include "libs/base/json.h"

namespace local_e2b {
namespace {

struct Case {
  const char* host;
  const char* id;
  const char* port;
  const char* destination;  // "id:port", or what is wrong.
};
void PrintTo(const Case& each, std::ostream* out) { *out << each.host << " " << each.id; }

std::string find(const Case& each) {
  aio::HttpHead head;
  if (*each.host != '\0') head.fields.emplace_back("host", each.host);
  if (*each.id != '\0') head.fields.emplace_back("E2B-Sandbox-ID", each.id);
  if (*each.port != '\0') head.fields.emplace_back("e2b-sandbox-port", each.port);
  const auto found = find_destination(head);
  if (const auto* why = std::get_if<std::string>(&found)) return *why;
  const auto& to = std::get<Destination>(found);
  return to.sandbox_id + ":" + std::to_string(to.port);
}

class Destinations : public testing::TestWithParam<Case> {};
TEST_P(Destinations, AreFoundInHostOrHeaders) {
  EXPECT_EQ(find(GetParam()), GetParam().destination);
}

INSTANTIATE_TEST_SUITE_P(
    All, Destinations,
    testing::Values(
        Case{"49983-iabc.sandbox.local", "", "", "iabc:49983"},
        Case{"8080-IABC.localhost:3002", "", "", "iabc:8080"},
        Case{"80-iabc-6532622b.x.dev", "", "", "iabc:80"},
        Case{"80-iabc.x.dev", "iother", "49983", "iabc:80"},
        Case{"127.0.0.1:3002", "iabc", "49983", "iabc:49983"},
        Case{"sandbox.x.dev", "iabc", " 80 ", "iabc:80"},
        Case{"my-machine.lan:1", "iabc", "80", "iabc:80"}, Case{"", "iabc", "80", "iabc:80"},
        Case{"localhost", "iabc", "", "the header E2b-Sandbox-Port is missing"},
        Case{"localhost", "", "80", "the header E2b-Sandbox-Id is missing"},
        Case{"localhost", "iabc", "0", "invalid sandbox port '0'"},
        Case{"localhost", "iabc", "65536", "invalid sandbox port '65536'"},
        Case{"localhost", "iabc", "+80", "invalid sandbox port '+80'"},
        Case{"localhost", "i_bc", "80", "invalid sandbox id 'i_bc'"},
        Case{"99999-iabc.x.dev", "", "", "invalid sandbox port '99999'"},
        Case{"80-a.b", "", "", "a:80"}, Case{"80-.b", "", "", "invalid sandbox id ''"},
        Case{"x.dev", "", "",
             "the host 'x.dev' is not <port>-<sandbox id>.<domain>, and there is no header "
             "E2b-Sandbox-Id"}));

TEST(InternalRoutes, AreKnownHoweverTheyAreSpelled) {
  for (const char* path : {"/init", "//init", "/./init", "/x/../init", "/INIT", "/init/", "/freeze",
                           "/unfreeze", "/fsfreeze", "/fsthaw", "/collapse", "/upgrade"})
    EXPECT_TRUE(is_internal(path)) << path;
  for (const char* path :
       {"/health", "/files", "/", "/init/x", "/process.Process/Start", "/initial"})
    EXPECT_FALSE(is_internal(path)) << path;
}

TEST(Tokens, GuardPrivateTrafficAndWaking) {
  Sandbox sandbox;
  sandbox.envd_token = "e";
  sandbox.traffic_token = "t";
  sandbox.allow_public_traffic = false;
  const aio::HttpHead none;
  const aio::HttpHead both{.fields = {{"e2b-traffic-access-token", "t"}, {"x-access-token", "e"}}};
  const aio::HttpHead wrong{.fields = {{"e2b-traffic-access-token", "x"}, {"x-access-token", "x"}}};
  const Destination envd{"i", 49983}, port{"i", 80};
  EXPECT_TRUE(may_pass(sandbox, envd, none)) << "envd asks for its own token";
  EXPECT_FALSE(may_pass(sandbox, port, none));
  EXPECT_FALSE(may_pass(sandbox, port, wrong));
  EXPECT_TRUE(may_pass(sandbox, port, both));
  EXPECT_FALSE(may_wake(sandbox, envd, none));
  EXPECT_FALSE(may_wake(sandbox, envd, wrong));
  EXPECT_TRUE(may_wake(sandbox, envd, both));
  EXPECT_FALSE(may_wake(sandbox, port, none));
  sandbox.allow_public_traffic = true;
  EXPECT_TRUE(may_pass(sandbox, port, none));
  EXPECT_TRUE(may_wake(sandbox, port, none));
}

TEST(RouterReplies, TellAClosedPortFromASandboxThatIsGone) {
  const Destination to{"iabc", 80};
  const auto gone = *base::parse_json(not_running(to).body);
  EXPECT_EQ(gone["code"], 502);
  EXPECT_EQ(gone["sandboxId"], "iabc");
  EXPECT_FALSE(gone.contains("port"));
  const auto closed = *base::parse_json(port_closed(to).body);
  EXPECT_EQ(closed["port"], 80);
}

}  // namespace
}  // namespace local_e2b
