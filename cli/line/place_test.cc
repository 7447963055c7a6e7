#include "cli/line/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/files.h"
#include "libs/base/testing/temporary_folder.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::string_view kKubeconfig = R"(
current-context: dev
clusters: [{name: c, cluster: {server: "https://SERVER"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: dev, context: {cluster: c, user: u, namespace: team}}
- {name: prod, context: {cluster: c, user: u}}
)";

std::string kubeconfig_of(const std::string& server) {
  std::string text(kKubeconfig);
  return text.replace(text.find("SERVER"), 6, server);
}

class PlaceTest : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    EXPECT_TRUE(base::write_file_atomically(path, text, 0600));
    return path;
  }
  // The state folder, the server with the namespace, or how the command ends and why.
  std::string place() const {
    const auto place = choose_place(options_, around_);
    if (!place) return std::to_string(place.error().exit) + " " + place.error().message;
    if (!place->cluster) return "folder " + place->state.string();
    return place->cluster->cluster.server + " " + place->cluster->space;
  }

  base::TemporaryFolder folder_;
  Options options_;
  Surroundings around_{.kube = {.home = folder_ / "home", .service_account = folder_ / "account"}};
};

TEST_F(PlaceTest, IsWhatTheCommandLineNamesElseTheStateFolderElseTheKubeconfig) {
  EXPECT_EQ(place(),
            "2 nowhere to look: give --state DIR or set SANDFLEET_STATE for a standalone "
            "controller, or name a cluster by --kubeconfig FILE, KUBECONFIG or ~/.kube/config");
  write("home/.kube/config", kubeconfig_of("home"));
  EXPECT_EQ(place(), "https://home team");
  around_.kube.kubeconfig = write("listed", kubeconfig_of("listed"));
  EXPECT_EQ(place(), "https://listed team");
  around_.state = "/environment";
  EXPECT_EQ(place(), "folder /environment");
  options_.context = "prod";
  EXPECT_EQ(place(), "https://listed default");
  options_.kubeconfig = write("flag", kubeconfig_of("flag"));
  EXPECT_EQ(place(), "https://flag default");
  options_.state = "/flag";
  EXPECT_EQ(place(), "2 --state is a folder, --kubeconfig and --context name a cluster: give one");
  options_.kubeconfig = options_.context = "";
  EXPECT_EQ(place(), "folder /flag");
}

TEST_F(PlaceTest, IsThePodsClusterInAPod) {
  write("account/token", "t");
  write("account/ca.crt", "-----BEGIN CERTIFICATE-----\n");
  write("account/namespace", "sandfleet-system");
  around_.kube.service_host = "10.96.0.1";
  around_.kube.service_port = "443";
  EXPECT_EQ(place(), "https://10.96.0.1:443 sandfleet-system");
}

TEST_F(PlaceTest, RefusesFlagsThatMeanNothingThere) {
  options_.state = "/state";
  options_.force_conflicts = true;
  EXPECT_THAT(place(), HasSubstr("2 --force-conflicts is for a cluster"));
  options_ = {};
  options_.kubeconfig = write("flag", kubeconfig_of("flag"));
  options_.remove_manifest = true;
  EXPECT_THAT(place(), HasSubstr("2 --remove-manifest is for a folder of manifests"));
}

struct BadCase {
  const char* name;
  std::string text;
  const char* context;
  const char* says;  // F stands for the file.
};
// What each field may hold is tested where it is read (libs/kube/kubeconfig_test.cc).
TEST_F(PlaceTest, SaysWhatIsWrongWithAKubeconfig) {
  const BadCase cases[] = {
      {"empty", "", "", "1 F: the file is empty; write a kubeconfig into it"},
      {"no_yaml", "a: [", "", "1 F:1:"},
      {"no_current", "clusters: []\n", "", "1 F: current-context: is not set; write one"},
      {"no_such_context", std::string(kKubeconfig), "gone",
       "1 F: contexts: there is no context \"gone\"; choose one of dev, prod"},
  };
  for (const auto& each : cases) {
    options_.kubeconfig = write(each.name, each.text);
    options_.context = each.context;
    std::string says = each.says;
    says.replace(says.find('F'), 1, options_.kubeconfig);
    EXPECT_THAT(place(), testing::StartsWith(says)) << each.name;
  }
  options_ = {.kubeconfig = "/nowhere/config"};
  EXPECT_EQ(place(), "1 cannot read /nowhere/config: No such file or directory");
}

TEST(ProgramName, IsAsPeopleTypeIt) {
  EXPECT_EQ(program_named("sandfleet"), "sandfleet");
  EXPECT_EQ(program_named("/usr/bin/sandfleet"), "sandfleet");
  EXPECT_EQ(program_named("/usr/local/bin/kubectl-sandfleet"), "kubectl sandfleet");
  EXPECT_EQ(program_named("/kubectl-folder/renamed"), "sandfleet");
}

}  // namespace
}  // namespace cli
