#include "controller/options.h"

#include <gtest/gtest.h>

#include <ostream>

namespace controller {
namespace {

struct Case {
  const char* name;
  std::vector<const char*> arguments;
  const char* message;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr const char* kFolders[] = {"--manifests", "m", "--state", "s"};

const Case kBad[] = {
    {"unknown", {"--manifest"}, "The following argument was not expected: --manifest"},
    {"stray_argument", {"m"}, "The following argument was not expected: m"},
    {"no_value", {"--executor"}, "--executor: 1 required TEXT missing"},
    {"twice", {"--state", "a"}, "--state: At Most 1 required but received 2"},
    {"workers_none", {"--workers", "0"}, "--workers: Value 0 not in range 1 to 256"},
    {"workers_many", {"--workers", "257"}, "--workers: Value 257 not in range 1 to 256"},
    {"workers_no_number", {"--workers", "eight"}, "--workers: Value eight not in range 1 to 256"},
    {"workers_a_fraction", {"--workers", "1.5"}, "--workers: Value 1.5 not in range 1 to 256"},
    {"operations_none", {"--operations", "0"}, "--operations: Value 0 not in range 1 to 512"},
    {"metrics_port_too_high",
     {"--metrics-port", "65536"},
     "--metrics-port: Value 65536 not in range 0 to 65535"},
    {"metrics_port_below_zero",
     {"--metrics-port", "-1"},
     "--metrics-port: Value -1 not in range 0 to 65535"},
    {"poll_never", {"--poll-seconds", "0"}, "--poll-seconds: Value 0 not in range 1 to 3600"},
    {"poll_hardly_ever",
     {"--poll-seconds", "3601"},
     "--poll-seconds: Value 3601 not in range 1 to 3600"},
    {"sweep_never", {"--sweep-seconds", "0"}, "--sweep-seconds: Value 0 not in range 1 to 86400"},
    {"grace_below_zero",
     {"--grace-seconds", "-1"},
     "--grace-seconds: Value -1 not in range 0 to 86400"},
    {"shards_none", {"--shards", "0"}, "--shards: Value 0 not in range 1 to 64"},
    {"lease_too_short", {"--lease-seconds", "2"}, "--lease-seconds: Value 2 not in range 3 to 300"},
    {"attach_port_too_high",
     {"--attach-port", "65536"},
     "--attach-port: Value 65536 not in range 0 to 65535"},
    {"attach_look_never",
     {"--attach-look-seconds", "0"},
     "--attach-look-seconds: Value 0 not in range 1 to 86400"},
    {"http_transport",
     {"--http-transport", "wget"},
     "--http-transport: wget not in {cpprest,curl}"},
    {"log_level", {"--log-level", "loud"}, "--log-level: loud not in {debug,info,warn,error}"},
    {"log_format", {"--log-format", "xml"}, "--log-format: xml not in {text,json}"},
};

std::string complaint_of(const std::vector<const char*>& arguments) {
  std::vector<const char*> argv = {"sandfleet-controller"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  Options options;
  testing::internal::CaptureStderr();
  const auto exit_code = parse_options(static_cast<int>(argv.size()), argv.data(), options);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(exit_code, 2);
  EXPECT_NE(told.find("\nRun 'sandfleet-controller --help' for its flags.\n"), std::string::npos);
  return told.substr(0, told.find('\n'));
}

class BadFlag : public testing::TestWithParam<Case> {};

TEST_P(BadFlag, IsNamedWithWhatToDo) {
  std::vector<const char*> arguments(std::begin(kFolders), std::end(kFolders));
  arguments.insert(arguments.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  EXPECT_EQ(complaint_of(arguments), std::string("sandfleet-controller: ") + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(, BadFlag, testing::ValuesIn(kBad),
                         [](const auto& info) { return info.param.name; });

TEST(Options, OfAFolderAndOfAClusterDoNotGoTogether) {
  const auto refused = [](const std::vector<const char*>& arguments) {
    return complaint_of(arguments).substr(std::string("sandfleet-controller: ").size());
  };
  EXPECT_EQ(refused({"--state", "s"}), "--state goes with --manifests");
  EXPECT_EQ(refused({"--manifests", "m"}), "--manifests goes with --state");
  EXPECT_EQ(refused({"--claim-moved-manifests"}), "--claim-moved-manifests goes with --manifests");
  EXPECT_EQ(refused({"--attach-socket", "s"}), "the attach service's socket goes with --manifests");
  EXPECT_EQ(refused({"--attach-socket-group", "g"}),
            "the attach service's socket goes with --manifests");
  const std::pair<const char*, const char*> kOfACluster[] = {{"--kubeconfig", "k"},
                                                             {"--context", "c"},
                                                             {"--namespace", "n"},
                                                             {"--release", "r"},
                                                             {"--own-namespace", "n"},
                                                             {"--shards", "2"},
                                                             {"--lease-seconds", "9"},
                                                             {"--http-transport", "curl"},
                                                             {"--attach-address", "0.0.0.0"},
                                                             {"--attach-port", "1"},
                                                             {"--attach-name", "a.svc"},
                                                             {"--attach-secret", "tls"},
                                                             {"--attach-look-seconds", "1"}};
  for (const auto& [flag, value] : kOfACluster)
    EXPECT_EQ(refused({"--manifests", "m", "--state", "s", flag, value}),
              "--manifests is a folder; flags of a cluster do not go with it")
        << flag;
}

TEST(Options, OfAClusterNeedNoFlag) {
  const char* argv[] = {"sandfleet-controller"};
  Options options;
  EXPECT_EQ(parse_options(std::size(argv), argv, options), std::nullopt);
  EXPECT_FALSE(options.has_folder());
}

const Case kBadAttach[] = {
    {"port_alone",
     {"--attach-port", "8443"},
     "flags of the attach service go with --attach-address"},
    {"name_alone", {"--attach-name", "a"}, "flags of the attach service go with --attach-address"},
    {"secret_alone",
     {"--attach-secret", "tls"},
     "flags of the attach service go with --attach-address"},
    {"look_alone",
     {"--attach-look-seconds", "1"},
     "flags of the attach service go with --attach-address"},
    {"host_name",
     {"--attach-address", "localhost", "--attach-name", "a"},
     "--attach-address localhost: give an IPv4 or IPv6 address, such as 0.0.0.0"},
    {"port_no_number",
     {"--attach-address", "0.0.0.0:https", "--attach-name", "a"},
     "--attach-address 0.0.0.0:https: the port is not a number from 0 to 65535"},
    {"no_address_before_the_port",
     {"--attach-address", ":1", "--attach-name", "a"},
     "--attach-address :1: give an IPv4 or IPv6 address, such as 0.0.0.0"},
    {"no_certificate",
     {"--attach-address", "0.0.0.0"},
     "--attach-address goes with either --attach-name, what clients dial, for a certificate of "
     "ours, or --attach-secret, for somebody else's"},
    {"two_certificates",
     {"--attach-address", "0.0.0.0", "--attach-name", "a", "--attach-secret", "tls"},
     "--attach-address goes with either --attach-name, what clients dial, for a certificate of "
     "ours, or --attach-secret, for somebody else's"},
    {"name_with_a_port",
     {"--attach-address", "0.0.0.0", "--attach-name", "a.svc", "--attach-name", "b.svc:443"},
     "--attach-name b.svc:443: give a host name or an IP address, without a port"},
};

class BadAttachFlag : public testing::TestWithParam<Case> {};

TEST_P(BadAttachFlag, IsNamedWithWhatToDo) {
  EXPECT_EQ(complaint_of(GetParam().arguments),
            std::string("sandfleet-controller: ") + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(, BadAttachFlag, testing::ValuesIn(kBadAttach),
                         [](const auto& info) { return info.param.name; });

TEST(Options, SayWhereToListen) {
  const auto shown = [](const std::string& text) {
    const auto at = listening_at("--x", text, 7);
    return at ? at->host + " " + std::to_string(at->port) : at.error().message;
  };
  EXPECT_EQ(shown("0.0.0.0"), "0.0.0.0 7");
  EXPECT_EQ(shown("0.0.0.0:8"), "0.0.0.0 8");
  EXPECT_EQ(shown("::1"), "::1 7");
  EXPECT_EQ(shown("[::1]:8"), "::1 8");
  EXPECT_EQ(shown("0.0.0.0:65536"), "--x 0.0.0.0:65536: the port is not a number from 0 to 65535");
}

TEST(Options, OfTheAttachServiceAreTakenTogether) {
  for (const std::vector<const char*>& more :
       {std::vector<const char*>{"--attach-name", "a.svc", "--attach-name", "10.0.0.1"},
        {"--attach-secret", "tls", "--attach-look-seconds", "60"}}) {
    std::vector<const char*> argv = {"sandfleet-controller", "--attach-address", "[::]:8443"};
    argv.insert(argv.end(), more.begin(), more.end());
    Options options;
    EXPECT_EQ(parse_options(static_cast<int>(argv.size()), argv.data(), options), std::nullopt);
  }
}

TEST(Options, TakeEachFlag) {
  const char* argv[] = {"sandfleet-controller",
                        "--manifests",
                        "m",
                        "--state",
                        "s",
                        "--api-key-file",
                        "one=a",
                        "--api-key-file",
                        "b",
                        "--claim-moved-manifests",
                        "--workers",
                        "256",
                        "--grace-seconds",
                        "0",
                        "--log-format",
                        "json"};
  Options options;
  EXPECT_EQ(parse_options(std::size(argv), argv, options), std::nullopt);
  EXPECT_EQ(options.manifests, "m");
  EXPECT_EQ(options.state, "s");
  EXPECT_EQ(options.api_key_files, (std::vector<std::string>{"one=a", "b"}));
  EXPECT_TRUE(options.claim_moved_manifests);
  EXPECT_EQ(options.workers, 256);
  EXPECT_EQ(options.grace_seconds, 0);
  EXPECT_EQ(options.log_format, "json");
  EXPECT_EQ(options.poll_seconds, Options{}.poll_seconds);
}

}  // namespace
}  // namespace controller
