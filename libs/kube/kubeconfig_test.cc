#include "libs/kube/kubeconfig.h"

#include <gmock/gmock.h>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/base/testing/temporary_folder.h"

namespace kube {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
constexpr const char* kCanary = "canary-that-nobody-may-see";

class KubeconfigTest : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(base::make_folders((folder_ / name).parent_path(), 0700));
    EXPECT_TRUE(base::write_file_atomically(folder_ / name, text, 0600));
    return folder_ / name;
  }
  base::Result<Config> read(const std::string& text, const std::string& context = "") {
    return read_kubeconfig({{folder_ / "config", text}}, context);
  }
  // The error, without the folder that the test happens to have.
  std::string error_of(const std::string& text, const std::string& context = "") {
    const auto read_config = read(text, context);
    if (read_config) return "it was read";
    EXPECT_EQ(read_config.error().code, base::ErrorCode::kInvalid);
    std::string message = read_config.error().message;
    const std::string prefix = folder_.path().string() + "/";
    for (std::size_t at; (at = message.find(prefix)) != std::string::npos;)
      message.erase(at, prefix.size());
    return message;
  }

  base::TemporaryFolder folder_;
};

std::string with_cluster(const std::string& fields) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: dev\n"
         "contexts:\n- name: dev\n  context: {cluster: here, user: me}\n"
         "users:\n- name: me\n  user: {}\n"
         "clusters:\n- name: here\n  cluster:\n" +
         fields;
}

std::string with_user(const std::string& fields) {
  return "current-context: dev\n"
         "contexts:\n- name: dev\n  context: {cluster: here, user: me}\n"
         "clusters:\n- name: here\n  cluster: {server: 'https://10.0.0.1:6443'}\n"
         "users:\n- name: me\n  user:\n" +
         fields;
}

TEST_F(KubeconfigTest, ReadsWhatTheCurrentContextNames) {
  write("pki/ca.crt", kPem);
  const auto config = read(
      "kind: Config\ncurrent-context: dev\n"
      "contexts:\n- {name: other, context: {cluster: x, user: who}}\n"
      "- {name: dev, context: {cluster: here, user: me, namespace: team-a}}\n"
      "clusters:\n- name: here\n  cluster:\n"
      "    server: https://10.0.0.1:6443/k8s/\n    certificate-authority: pki/ca.crt\n"
      "    tls-server-name: api.internal\n    proxy-url: socks5://10.0.0.2:1080\n"
      "    extensions: [{name: e, extension: {}}]\n"
      "users:\n- name: me\n  user: {token: ' abc '}\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->cluster, (Cluster{.server = "https://10.0.0.1:6443/k8s",
                                      .authority = {.file = folder_ / "pki/ca.crt"},
                                      .tls_server_name = "api.internal",
                                      .proxy_url = "socks5://10.0.0.2:1080"}));
  EXPECT_EQ(config->user, (User{.token = "abc"}));
  EXPECT_EQ(config->space, "team-a");
  EXPECT_EQ(config->source, "context dev of " + (folder_ / "config").string());
}

TEST_F(KubeconfigTest, ReadsEveryWayToLogIn) {
  const std::string data = base::to_base64(kPem);
  write("me.crt", kPem);
  write("me.key", kPem);
  write("token", "from-file");
  const auto user = [&](const std::string& fields) {
    const auto config = read(with_user(fields));
    EXPECT_TRUE(config) << config.error().message;
    return config ? config->user : User{};
  };
  EXPECT_EQ(user("    {}\n"), User{});
  EXPECT_EQ(user("    {tokenFile: token, token: x}\n"),
            (User{.token = "x", .token_file = folder_ / "token"}));
  EXPECT_EQ(user("    {username: u, password: p}\n"), (User{.username = "u", .password = "p"}));
  EXPECT_EQ(
      user("    {client-certificate: me.crt, client-key: me.key}\n"),
      (User{.certificate = {.file = folder_ / "me.crt"}, .key = {.file = folder_ / "me.key"}}));
  // Data wins over a file, which then need not be there.
  EXPECT_EQ(user("    {client-certificate-data: " + data +
                 ", client-certificate: gone.crt, "
                 "client-key-data: " +
                 data + "}\n"),
            (User{.certificate = {kPem}, .key = {kPem}}));
  EXPECT_EQ(user("    {as: jane, as-uid: '7', as-groups: [a, b], as-user-extra: {reason: [x]}}\n"),
            (User{.impersonation = {"jane", "7", {"a", "b"}, {{"reason", {"x"}}}}}));
  EXPECT_EQ(user("    exec:\n      apiVersion: client.authentication.k8s.io/v1\n"
                 "      command: bin/../bin/login\n      args: [--cluster, dev]\n"
                 "      env: [{name: A, value: b}]\n      installHint: ask us\n"
                 "      provideClusterInfo: true\n      interactiveMode: Never\n"),
            (User{.exec = ExecPlugin{"client.authentication.k8s.io/v1",
                                     (folder_ / "bin/login").string(),
                                     {"--cluster", "dev"},
                                     {{"A", "b"}},
                                     "ask us",
                                     true}}));
  EXPECT_EQ(
      user("    {token: x, exec: {apiVersion: client.authentication.k8s.io/v1, command: login}}\n"),
      (User{.token = "x"}));
  EXPECT_EQ(user("    {exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: login}}\n")
                .exec->command,
            "login");
}

TEST_F(KubeconfigTest, TakesTheFirstFileThatSaysAThing) {
  const KubeconfigFile first{folder_ / "a/config",
                             "current-context: dev\n"
                             "users:\n- {name: me, user: {token: first}}\n"};
  const KubeconfigFile second{folder_ / "b/config",
                              "current-context: prod\n"
                              "contexts:\n- {name: dev, context: {cluster: here, user: me}}\n"
                              "users:\n- {name: me, user: {token: second, as: jane}}\n"
                              "clusters:\n- {name: here, cluster: {server: 'https://b'}}\n"};
  const KubeconfigFile third{folder_ / "c/config",
                             "clusters:\n- {name: here, cluster: {server: 'https://c'}}\n"};
  const auto config = read_kubeconfig({first, second, third}, "");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->user, (User{.token = "first"}));
  EXPECT_EQ(config->cluster.server, "https://b");
}

TEST_F(KubeconfigTest, JudgesOnlyWhatTheContextUses) {
  EXPECT_TRUE(read(with_user("    {}\n- name: broken\n  user: {token: [1], exec: {}}\n")));
}

struct Refused {
  const char* name;
  std::string text, message;
  std::string context = {};
};

TEST_F(KubeconfigTest, SaysWhatIsWrongWhereAndWhatToDo) {
  const std::string data = base::to_base64(kPem);
  write("not-pem", "hello");
  const Refused kCases[] = {
      {"not YAML", "a: [",
       "config:1:1: this is not YAML: end of sequence flow not found; check "
       "indentation, colons and quotes around here"},
      {"empty", "# nothing\n", "config: the file is empty; write a kubeconfig into it"},
      {"a list", "- a\n", "config:1:1: must be a mapping; write its fields below it, indented"},
      {"two documents", with_user("    {}\n---\nkind: Config\n"),
       "config:1:1: the file has more than one document; keep one, without --- between"},
      {"another kind", "kind: Pod\n", "config:1:7: kind: must be Config; give a kubeconfig file"},
      {"no current context", "contexts:\n- {name: b, context: {}}\n- {name: a, context: {}}\n",
       "config: current-context: is not set; choose one of a, b"},
      {"no contexts at all", "kind: Config\n", "config: current-context: is not set; write one"},
      {"an unknown context", with_user("    {}\n"),
       "config: contexts: there is no context \"prod\"; choose one of dev", "prod"},
      {"an unknown cluster",
       "current-context: a\ncontexts:\n- {name: a, context: {cluster: x, user: who}}\n"
       "users:\n- {name: who, user: {}}\nclusters:\n- {name: z, cluster: {}}\n",
       "config:3:32: contexts[0].context.cluster: there is no cluster \"x\"; choose one of z"},
      {"no cluster", "current-context: a\ncontexts:\n- {name: a, context: {}}\n",
       "config:3:22: contexts[0].context.cluster: is missing; write one"},
      {"an unknown user",
       "current-context: a\ncontexts:\n- {name: a, context: {cluster: z, user: who}}\n"
       "clusters:\n- {name: z, cluster: {server: 'http://a'}}\n",
       "config:3:41: contexts[0].context.user: there is no user \"who\"; write one"},
      {"twins", "users:\n- {name: me, user: {}}\n- {name: me, user: {}}\n",
       "config:3:10: users[1].name: \"me\" stands twice in this list; remove or rename one"},
      {"a nameless one", "users:\n- {user: {}}\n",
       "config:2:3: users[0].name: is missing; give the entry a name"},
      {"users as a mapping", "users: {me: {}}\n",
       "config:1:8: users: must be a list; begin every item with a dash"},
      {"no server", with_cluster("    {insecure-skip-tls-verify: true}\n"),
       "config:13:5: clusters[0].cluster.server: is missing; add it, like https://10.0.0.1:6443"},
      {"a server without scheme", with_cluster("    server: 10.0.0.1:6443\n"),
       "config:13:13: clusters[0].cluster.server: must be an http:// or https:// URL without user "
       "or query; write it like https://10.0.0.1:6443"},
      {"a server with a user",
       with_cluster("    server: https://a:" + std::string(kCanary) + "@b\n"),
       "config:13:13: clusters[0].cluster.server: must be an http:// or https:// URL without user "
       "or query; write it like https://10.0.0.1:6443"},
      {"an authority that is not base64",
       with_cluster("    server: https://a\n    certificate-authority-data: '%" +
                    std::string(kCanary) + "'\n"),
       "config:14:33: clusters[0].cluster.certificate-authority-data: must be base64; encode the "
       "PEM text with base64 -w0"},
      {"an authority that is not PEM",
       with_cluster("    server: https://a\n    certificate-authority-data: aGVsbG8=\n"),
       "config:14:33: clusters[0].cluster.certificate-authority-data: holds no PEM block; give PEM "
       "text, which begins with -----BEGIN"},
      {"a file that is not PEM",
       with_cluster("    server: https://a\n    certificate-authority: not-pem\n"),
       "config:14:28: clusters[0].cluster.certificate-authority: holds no PEM block; give PEM "
       "text, which begins with -----BEGIN"},
      {"a file that is not there",
       with_cluster("    server: https://a\n    certificate-authority: gone.crt\n"),
       "config:14:28: clusters[0].cluster.certificate-authority: cannot read gone.crt: No such "
       "file "
       "or directory; correct the path, or make the file readable"},
      {"insecure beside an authority",
       with_cluster("    server: https://a\n    insecure-skip-tls-verify: true\n"
                    "    certificate-authority-data: " +
                    data + "\n"),
       "config:14:31: clusters[0].cluster.insecure-skip-tls-verify: stands beside a certificate "
       "authority; remove one of the two"},
      {"a flag in words",
       with_cluster("    server: https://a\n    insecure-skip-tls-verify: 'yes'\n"),
       "config:14:31: clusters[0].cluster.insecure-skip-tls-verify: must be true or false; write "
       "one of them without quotes"},
      {"a proxy of another kind", with_cluster("    {server: 'https://a', proxy-url: 'ftp://b'}\n"),
       "config:13:38: clusters[0].cluster.proxy-url: must be an http://, https:// or socks5:// "
       "URL; write it like http://10.0.0.2:3128"},
      {"a token that is a number", with_user("    token: 123456\n"),
       "config:11:12: users[0].user.token: must be text; put it in quotes"},
      {"a token on two lines", with_user("    token: \"" + std::string(kCanary) + "\\nx\"\n"),
       "config:11:12: users[0].user.token: has a line break in it; write it on one line"},
      {"two ways to log in", with_user("    token: x\n    username: u\n"),
       "config:11:5: users[0].user: token and username are two ways to log in; keep one"},
      {"a certificate without its key", with_user("    client-certificate-data: " + data + "\n"),
       "config:11:5: users[0].user: client-certificate and client-key go together; give both, or "
       "neither"},
      {"a token file that is not there", with_user("    tokenFile: gone\n"),
       "config:11:16: users[0].user.tokenFile: cannot read gone: No such file or directory; "
       "correct "
       "the path, or make the file readable"},
      {"an auth-provider", with_user("    auth-provider: {name: gcp}\n"),
       "config:11:20: users[0].user.auth-provider: is no longer known to Kubernetes clients; use "
       "exec with a credential plugin"},
      {"groups without a user", with_user("    as-groups: [a]\n"),
       "config:11:5: users[0].user.as: is missing beside as-uid, as-groups or as-user-extra; name "
       "the user to act as"},
      {"groups that are no texts", with_user("    as: a\n    as-groups: [1]\n"),
       "config:12:16: users[0].user.as-groups: must be a list of texts; put every item in quotes"},
      {"a plugin of another version",
       with_user("    exec:\n      apiVersion: client.authentication.k8s.io/v1alpha1\n"
                 "      command: a\n"),
       "config:12:19: users[0].user.exec.apiVersion: must be client.authentication.k8s.io/v1 or "
       "v1beta1; write the version that the plugin speaks"},
      {"a plugin without a command",
       with_user("    exec:\n      apiVersion: client.authentication.k8s.io/v1\n"),
       "config:12:7: users[0].user.exec.command: is missing; name the program to run"},
      {"a plugin's nameless variable",
       with_user("    exec: {apiVersion: client.authentication.k8s.io/v1, command: a, env: "
                 "[{value: " +
                 std::string(kCanary) + "}]}\n"),
       "config:11:75: users[0].user.exec.env[0].name: must name an environment variable; give name "
       "and value"},
      {"a plugin that wants a terminal",
       with_user("    exec: {apiVersion: client.authentication.k8s.io/v1, command: a, "
                 "interactiveMode: Always}\n"),
       "config:11:86: users[0].user.exec.interactiveMode: Always needs a terminal, and there is "
       "none; write Never or IfAvailable if the plugin can do without"},
      {"many things",
       "current-context: a\ncontexts:\n- {name: a, context: {cluster: x, user: who}}\n",
       "config:3:32: contexts[0].context.cluster: there is no cluster \"x\"; write one\n"
       "config:3:41: contexts[0].context.user: there is no user \"who\"; write one"},
  };
  for (const Refused& wrong : kCases) {
    const std::string message = error_of(wrong.text, wrong.context);
    EXPECT_EQ(message, wrong.message) << wrong.name;
    EXPECT_THAT(message, Not(HasSubstr(kCanary))) << wrong.name;
  }
}

class FindConfigTest : public KubeconfigTest {
 protected:
  static std::string of_server(const std::string& server) {
    return "current-context: a\ncontexts:\n- {name: a, context: {cluster: c}}\n"
           "clusters:\n- {name: c, cluster: {server: '" +
           server + "'}}\n";
  }
  std::string server(const Choice& choice) {
    const auto config = find_config(choice, around_);
    return config ? config->cluster.server : config.error().message;
  }
  void become_pod() {
    write("account/token", "t");
    write("account/ca.crt", kPem);
    write("account/namespace", "sandfleet-system");
    around_.service_host = "10.96.0.1";
    around_.service_port = "443";
  }

  Surroundings around_{.home = folder_ / "home", .service_account = folder_ / "account"};
};

TEST_F(FindConfigTest, LooksWhereKubectlLooksAndInTheSameOrder) {
  EXPECT_EQ(server({}),
            "no cluster to talk to: there is no ~/.kube/config, $KUBECONFIG is not set, and this "
            "is no pod; give --kubeconfig");
  EXPECT_EQ(find_config({}, around_).error().code, base::ErrorCode::kNotFound);
  become_pod();
  EXPECT_EQ(server({}), "https://10.96.0.1:443");
  write("home/.kube/config", of_server("https://home"));
  EXPECT_EQ(server({}), "https://home");
  const fs::path listed = write("listed", of_server("https://listed"));
  around_.kubeconfig = ":" + (folder_ / "gone").string() + ":" + listed.string();
  EXPECT_EQ(server({}), "https://listed");
  const fs::path flag = write("flag", of_server("https://flag"));
  EXPECT_EQ(server({.kubeconfig = flag}), "https://flag");
}

TEST_F(FindConfigTest, SaysWhichFilesAreNotThere) {
  EXPECT_EQ(server({.kubeconfig = "/nowhere/config"}),
            "cannot read /nowhere/config: No such file or directory");
  around_.kubeconfig = "/nowhere/a:/nowhere/b";
  EXPECT_EQ(server({}),
            "$KUBECONFIG names no file that is there: /nowhere/a:/nowhere/b; correct it, or unset "
            "it");
  for (int file = 0; file < 100; ++file)
    around_.kubeconfig += ":" + write("c" + std::to_string(file), of_server("https://c")).string();
  EXPECT_EQ(server({}), "https://c");
  around_.kubeconfig += ":" + write("one-more", of_server("https://c")).string();
  EXPECT_EQ(server({}), "$KUBECONFIG names more than 100 files; name fewer");
}

TEST_F(FindConfigTest, ReadsThePodsOwnAccount) {
  become_pod();
  around_.service_host = "fd00::1";
  const auto config = in_cluster_config(around_);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(*config, (Config{.cluster = {.server = "https://[fd00::1]:443",
                                         .authority = {.file = folder_ / "account/ca.crt"}},
                             .user = {.token_file = folder_ / "account/token"},
                             .space = "sandfleet-system",
                             .source = "the pod's service account"}));
  fs::remove(folder_ / "account/token");
  EXPECT_THAT(in_cluster_config(around_).error().message,
              AllOf(HasSubstr("account/token: No such file or directory"),
                    HasSubstr("give the pod a service account")));
}

}  // namespace
}  // namespace kube
