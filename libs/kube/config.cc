#include "libs/kube/config.h"

#include <cstdlib>

#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/kube/kubeconfig.h"
#include "libs/yaml/reader.h"

namespace kube {

namespace fs = std::filesystem;
using base::error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr std::size_t kFilesMax = 100;  // In $KUBECONFIG.

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Result<KubeconfigFile> read_one(const fs::path& path) {
  TRY(std::string text, base::read_file(path, yaml::kFileBytesMax));
  return KubeconfigFile{path, std::move(text)};
}

// Files that are not there are passed over, as long as one is.
Result<Config> read_listed(const std::string& list, const std::string& context) {
  std::vector<KubeconfigFile> files;
  for (const std::string& name : base::split(list, ':')) {
    if (name.empty()) continue;
    if (files.size() == kFilesMax)
      return error(ErrorCode::kInvalid, "$KUBECONFIG names more than ", std::to_string(kFilesMax),
                   " files; name fewer");
    auto file = read_one(name);
    if (!file && file.error().code == ErrorCode::kNotFound) continue;
    if (!file) return file.error();
    files.push_back(*std::move(file));
  }
  if (files.empty())
    return error(ErrorCode::kInvalid, "$KUBECONFIG names no file that is there: ", list,
                 "; correct it, or unset it");
  return read_kubeconfig(files, context);
}

}  // namespace

Surroundings surroundings_of_process() {
  return {.kubeconfig = variable("KUBECONFIG"),
          .home = variable("HOME"),
          .service_host = variable("KUBERNETES_SERVICE_HOST"),
          .service_port = variable("KUBERNETES_SERVICE_PORT")};
}

Result<Config> find_config(const Choice& choice, const Surroundings& surroundings) {
  if (!choice.kubeconfig.empty()) {
    TRY(KubeconfigFile file, read_one(choice.kubeconfig));
    return read_kubeconfig({std::move(file)}, choice.context);
  }
  if (!surroundings.kubeconfig.empty()) return read_listed(surroundings.kubeconfig, choice.context);
  if (!surroundings.home.empty()) {
    auto file = read_one(surroundings.home / ".kube/config");
    if (file) return read_kubeconfig({*std::move(file)}, choice.context);
    if (file.error().code != ErrorCode::kNotFound) return file.error();
  }
  auto own = in_cluster_config(surroundings);
  if (own || own.error().code != ErrorCode::kNotFound) return own;
  return error(ErrorCode::kNotFound,
               "no cluster to talk to: there is no ~/.kube/config, $KUBECONFIG is not set, and "
               "this is no pod; give --kubeconfig");
}

Result<Config> in_cluster_config(const Surroundings& surroundings) {
  if (surroundings.service_host.empty() || surroundings.service_port.empty())
    return error(ErrorCode::kNotFound,
                 "this is no pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  const fs::path folder = surroundings.service_account;
  Config config;
  const bool v6 = surroundings.service_host.find(':') != std::string::npos;
  config.cluster.server = "https://" + std::string(v6 ? "[" : "") + surroundings.service_host +
                          (v6 ? "]" : "") + ":" + surroundings.service_port;
  config.cluster.authority.file = folder / "ca.crt";
  config.user.token_file = folder / "token";
  for (const fs::path& needed : {config.cluster.authority.file, config.user.token_file})
    if (const auto content = base::read_file(needed); !content)
      return error(ErrorCode::kInvalid, content.error().message,
                   "; give the pod a service account, with automountServiceAccountToken not false");
  if (const auto space = base::read_file(folder / "namespace")) config.space = base::trim(*space);
  config.source = "the pod's service account";
  return config;
}

}  // namespace kube
