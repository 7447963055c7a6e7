#include "agentd/way/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

namespace agentd {
namespace {

struct Case {
  const char* name;
  WayOptions options;
  const char* fault;  // Empty: none.
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

const Case kCases[] = {
    {"a_folder", {.state = "s"}, ""},
    {"a_folder_and_another_socket", {.state = "s", .attach_socket = "a"}, ""},
    {"a_cluster", {.attach_url = "https://attach.svc:8443"}, ""},
    {"a_cluster_in_full",
     {.kubeconfig = "k",
      .context = "c",
      .namespaces = {"n"},
      .attach_url = "https://attach.svc/",
      .attach_ca = "ca"},
     ""},
    {"nothing", {}, "give --state"},
    {"a_socket_alone", {.attach_socket = "a"}, "--attach-socket goes with --state"},
    {"both", {.state = "s", .attach_url = "https://a"}, "flags of a cluster do not go with it"},
    {"a_folder_and_a_namespace", {.state = "s", .namespaces = {"n"}}, "flags of a cluster"},
    {"a_folder_and_authorities", {.state = "s", .attach_ca = "ca"}, "flags of a cluster"},
    {"a_cluster_and_no_url", {.kubeconfig = "k"}, "--attach-url"},
    {"in_the_clear", {.attach_url = "http://attach.svc"}, "give an https URL"},
    {"no_url", {.attach_url = "attach.svc"}, "give an https URL"},
};

class OfWays : public testing::TestWithParam<Case> {};

TEST_P(OfWays, OptionsGoTogetherOrNot) {
  const std::string told = contradiction_in(GetParam().options);
  EXPECT_EQ(told.empty(), *GetParam().fault == '\0') << told;
  EXPECT_THAT(told, testing::HasSubstr(GetParam().fault));
}

INSTANTIATE_TEST_SUITE_P(, OfWays, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace agentd
