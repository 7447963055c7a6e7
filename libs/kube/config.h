#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/result.h"

// How we reach an API server and who we are there: what one context of a kubeconfig comes to, or
// what a pod finds in its own files.
namespace kube {

// PEM text: in the configuration, or in a file that may change under us and is read again.
struct Pem {
  std::string text = {};
  std::filesystem::path file = {};  // Not empty: instead of the text.
  bool empty() const { return text.empty() && file.empty(); }
  bool operator==(const Pem&) const = default;
};

struct Cluster {
  std::string server;  // "https://10.0.0.1:6443/prefix", without a slash at its end.
  Pem authority = {};  // Empty: the system's authorities.
  bool insecure = false;
  std::string tls_server_name = {};  // The name to ask for and to check; empty: the URL's.
  std::string proxy_url = {};        // Empty: what the environment says.
  bool operator==(const Cluster&) const = default;
};

// A program that knows our credentials (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;
  std::string command;  // With a slash: a path; else looked up in PATH.
  std::vector<std::string> args = {};
  std::vector<std::pair<std::string, std::string>> env = {};
  std::string install_hint = {};
  bool provide_cluster_info = false;
  bool operator==(const ExecPlugin&) const = default;
};

// Whom we act as, when our own account may act for others.
struct Impersonation {
  std::string user = {}, uid = {};
  std::vector<std::string> groups = {};
  std::map<std::string, std::vector<std::string>> extra = {};
  bool operator==(const Impersonation&) const = default;
};

struct User {
  std::string token = {};
  std::filesystem::path token_file = {};  // Wins over the token once it could be read.
  std::string username = {}, password = {};
  Pem certificate = {}, key = {};
  std::optional<ExecPlugin> exec = {};
  Impersonation impersonation = {};
  bool operator==(const User&) const = default;
};

struct Config {
  Cluster cluster;
  User user = {};
  std::string space = "default";  // The namespace for what names none.
  std::string source;             // For messages: "context dev of /root/.kube/config".
  bool operator==(const Config&) const = default;
};

// What the process was given, so that a test can give something else.
struct Surroundings {
  std::string kubeconfig = {};  // $KUBECONFIG: files between colons, the first to say a thing wins.
  std::filesystem::path home = {};
  std::string service_host = {}, service_port = {};  // $KUBERNETES_SERVICE_HOST and _PORT.
  std::filesystem::path service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
};
Surroundings surroundings_of_process();

struct Choice {
  std::filesystem::path kubeconfig = {};  // A flag's: this file and no other.
  std::string context = {};               // Empty: current-context.
};

// The chosen file; else $KUBECONFIG; else ~/.kube/config when it is there; else the pod's own
// account. kInvalid says every file and line that is wrong, and what to do; kNotFound: there is
// none of them.
base::Result<Config> find_config(const Choice& choice, const Surroundings& surroundings);

// The account of the pod that we run in; kNotFound outside of one.
base::Result<Config> in_cluster_config(const Surroundings& surroundings);

}  // namespace kube
