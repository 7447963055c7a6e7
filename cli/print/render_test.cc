#include "cli/print/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/print/yaml.h"
#include "libs/base/time.h"

namespace cli {
namespace {

using testing::HasSubstr;

const base::WallTime kNow = *base::parse_rfc3339("2026-11-29T12:00:00Z");

api::Sandbox ready_sandbox() {
  api::Sandbox sandbox;
  sandbox.metadata = {.key = {"default", "demo"},
                      .uid = "uid-1",
                      .generation = 2,
                      .labels = {{"team", "blue"}},
                      .created = kNow - base::Seconds(150)};
  sandbox.spec.template_id = "base";
  sandbox.status.observed_generation = 2;
  sandbox.status.conditions = {{"Ready", "True", "Ready", "", 2, kNow - base::Seconds(30)}};
  sandbox.status.state = "Running";
  sandbox.status.sandbox_id = "sb-1";
  sandbox.status.epoch = 1;
  sandbox.status.incarnation = 1;
  sandbox.status.run = 3;
  sandbox.status.endpoint_url = "http://24984-sb-1.local";
  sandbox.status.endpoint_routing = "Subdomain";
  sandbox.status.notices = {{1, kNow - base::Seconds(60), "the sandbox was resumed"}};
  return sandbox;
}

api::Sandbox new_sandbox() {
  api::Sandbox sandbox;
  sandbox.metadata = {.key = {"team", "a-much-longer-name"}, .uid = "uid-2"};
  sandbox.spec.template_id = "base-executor";
  return sandbox;
}

api::RecordedEvent pulled() {
  return {.regarding = {"default", "demo"},
          .regarding_uid = "uid-1",
          .event = {"Warning", "RateLimited", "Create", "the provider asked\nus to slow down"},
          .first = kNow - base::Seconds(600),
          .last = kNow - base::Seconds(5),
          .count = 7};
}

TEST(SandboxTable, ShowsTheColumnsThatPeopleLookFor) {
  EXPECT_EQ(to_text(sandbox_table({ready_sandbox(), new_sandbox()}, {}, kNow)),
            "NAME                 READY     STATE     SANDBOX-ID   TEMPLATE        AGE\n"
            "demo                 True      Running   sb-1         base            2m\n"
            "a-much-longer-name   Unknown   -         -            base-executor   -\n");
}

TEST(SandboxTable, AddsProviderEpochAndReasonWhenWide) {
  EXPECT_EQ(to_text(sandbox_table({ready_sandbox()}, {.wide = true, .spaces = true}, kNow)),
            "NAMESPACE   NAME   READY   STATE     SANDBOX-ID   TEMPLATE   AGE   PROVIDER   EPOCH   "
            "REASON\n"
            "default     demo   True    Running   sb-1         base       2m    default    1       "
            "Ready\n");
}

TEST(ProviderTable, ShowsWhereItIs) {
  api::SandboxProvider provider;
  provider.metadata.key.name = "default";
  provider.spec.api_url = "http://127.0.0.1:1";
  provider.spec.data_url = "http://127.0.0.1:2";
  provider.status.conditions = {{"Ready", "False", "CredentialsRejected", "", 1, kNow}};
  EXPECT_EQ(to_text(provider_table({provider}, {.wide = true}, kNow)),
            "NAME      READY   URL                  AGE   DATA-URL             ROUTING     REASON\n"
            "default   False   http://127.0.0.1:1   -     http://127.0.0.1:2   Subdomain   "
            "CredentialsRejected\n");
}

TEST(EventTable, CountsAndKeepsEachEventOnOneLine) {
  EXPECT_EQ(
      to_text(event_table({pulled()}, {}, kNow)),
      "LAST SEEN   TYPE      REASON        OBJECT         COUNT   MESSAGE\n"
      "5s          Warning   RateLimited   sandbox/demo   7       the provider asked us to slow "
      "down\n");
}

TEST(Describe, ShowsSpecStatusConditionsNoticesAndEvents) {
  EXPECT_EQ(describe(ready_sandbox(), "/manifests/demo.yaml", {{pulled()}}, kNow),
            "Name:             demo\n"
            "Namespace:        default\n"
            "UID:              uid-1\n"
            "Declared in:      /manifests/demo.yaml\n"
            "Created:          2026-11-29T11:57:30Z (2m ago)\n"
            "Generation:       2, observed 2\n"
            "Labels:           team=blue\n"
            "Provider:         default\n"
            "Template:         base\n"
            "Desired state:    Running\n"
            "Deletion policy:  Kill\n"
            "Keep alive:       300s lease, extended each 30s; on timeout Pause\n"
            "State:            Running\n"
            "Sandbox ID:       sb-1\n"
            "Epoch:            1, incarnation 1, run 3\n"
            "Endpoint:         http://24984-sb-1.local (Subdomain)\n"
            "Running since:    -\n"
            "Conditions:\n"
            "  TYPE    STATUS   REASON   SINCE   MESSAGE\n"
            "  Ready   True     Ready    30s     -\n"
            "Notices:\n"
            "  NUMBER   AGE   TEXT\n"
            "  1        60s   the sandbox was resumed\n"
            "Events:\n"
            "  LAST SEEN   TYPE      REASON        OBJECT         COUNT   MESSAGE\n"
            "  5s          Warning   RateLimited   sandbox/demo   7       the provider asked us to "
            "slow down\n");
}

TEST(Describe, LetsNoSandboxWriteToTheTerminal) {
  auto sandbox = ready_sandbox();
  sandbox.status.sandbox_id = "sb\x1b[2J";
  sandbox.status.conditions[0].message = "its log ends: a\nb\x1b]0;title\x07";
  const std::string page = describe(sandbox, "", std::nullopt, kNow);
  EXPECT_THAT(page, HasSubstr("sb [2J\n"));
  EXPECT_THAT(page, HasSubstr("its log ends: a b ]0;title \n"));
  EXPECT_THAT(page, HasSubstr("\nEvents:           could not be read\n"));
}

struct AgeCase {
  std::int64_t seconds;
  const char* words;
};
TEST(Age, IsAsPreciseAsItIsYoung) {
  const AgeCase cases[] = {{-5, "0s"},     {0, "0s"},    {119, "119s"},    {120, "2m"},
                           {7199, "119m"}, {7200, "2h"}, {172'799, "47h"}, {172'800, "2d"}};
  for (const auto& each : cases) {
    EXPECT_EQ(age(kNow - base::Seconds(each.seconds), kNow), each.words) << each.seconds;
  }
  EXPECT_EQ(age(std::nullopt, kNow), "-");
}

TEST(Yaml, QuotesWhatAReaderWouldTakeForSomethingElse) {
  const base::Json value = {{"word", "Running"},
                            {"yes", "no"},
                            {"number", "42"},
                            {"count", 42},
                            {"empty", ""},
                            {"colon", "a: b"},
                            {"list", {1, "x"}},
                            {"none", nullptr},
                            {"nothing", base::Json::object()},
                            {"nested", {{{"a", 1}, {"b", {true}}}}}};
  EXPECT_EQ(to_yaml(value),
            "colon: \"a: b\"\ncount: 42\nempty: \"\"\nlist:\n- 1\n- x\n"
            "nested:\n- a: 1\n  b:\n  - true\n"
            "none: null\nnothing: {}\nnumber: \"42\"\nword: Running\n\"yes\": \"no\"\n");
}

}  // namespace
}  // namespace cli
