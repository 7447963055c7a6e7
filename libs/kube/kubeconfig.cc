#include "libs/kube/kubeconfig.h"

#include <algorithm>
#include <list>
#include <set>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/net/transport.h"
#include "libs/yaml/reader.h"

namespace kube {

namespace fs = std::filesystem;
using base::Json;

namespace {

using Problems = std::vector<yaml::Problem>;

struct Source {
  fs::path path;
  yaml::Document document;
};

// One mapping of a file. What does not fit becomes a problem with its place; no message shows a
// value, for most of them are secrets.
class Entry {
 public:
  Entry(const Source& source, std::string pointer, Problems& problems)
      : source_(&source), pointer_(std::move(pointer)), problems_(&problems) {
    const Json::json_pointer at(pointer_);
    if (!source.document.json.contains(at)) return;
    const Json& value = source.document.json.at(at);
    if (value.is_object())
      object_ = &value;
    else if (!value.is_null())
      refuse_at(pointer_, "must be a mapping", "write its fields below it, indented");
  }

  const Source& source() const { return *source_; }
  bool has(const char* key) const { return find(key) != nullptr; }

  void refuse(const char* key, std::string rule, std::string cure) const {
    refuse_at(yaml::pointer_to(pointer_, key), std::move(rule), std::move(cure));
  }
  void refuse(std::string rule, std::string cure) const {
    refuse_at(pointer_, std::move(rule), std::move(cure));
  }

  std::string text(const char* key) const {
    const Json* value = find(key);
    if (!value) return {};
    if (value->is_string()) return value->get<std::string>();
    refuse(key, "must be text", "put it in quotes");
    return {};
  }

  bool flag(const char* key) const {
    const Json* value = find(key);
    if (!value) return false;
    if (value->is_boolean()) return value->get<bool>();
    refuse(key, "must be true or false", "write one of them without quotes");
    return false;
  }

  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> all;
    for (const Json& value : list(key)) {
      if (value.is_string())
        all.push_back(value.get<std::string>());
      else
        refuse(key, "must be a list of texts", "put every item in quotes");
    }
    return all;
  }

  Entry inside(const char* key) const {
    return Entry(*source_, yaml::pointer_to(pointer_, key), *problems_);
  }
  std::vector<Entry> items(const char* key) const {
    std::vector<Entry> all;
    for (std::size_t index = 0; index < list(key).size(); ++index)
      all.emplace_back(*source_, yaml::pointer_to(yaml::pointer_to(pointer_, key), index),
                       *problems_);
    return all;
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> all;
    if (object_)
      for (const auto& [key, value] : object_->items()) all.push_back(key);
    return all;
  }

  struct Named {
    fs::path path = {};
    std::string text = {};
  };
  // A file that this one names, relative to its own folder; it must be readable.
  Named file(const char* key) const {
    const std::string name = text(key);
    if (name.empty()) return {};
    Named named{fs::absolute(source_->path).parent_path() / name};
    if (auto read = base::read_file(named.path, yaml::kFileBytesMax))
      named.text = *std::move(read);
    else
      refuse(key, read.error().message, "correct the path, or make the file readable");
    return named;
  }

 private:
  const Json* find(const char* key) const {
    if (!object_) return nullptr;
    const auto found = object_->find(key);
    return found == object_->end() || found->is_null() ? nullptr : &*found;
  }

  const Json& list(const char* key) const {
    static const Json kNone = Json::array();
    const Json* value = find(key);
    if (!value || value->is_array()) return value ? *value : kNone;
    refuse(key, "must be a list", "begin every item with a dash");
    return kNone;
  }

  void refuse_at(const std::string& pointer, std::string rule, std::string cure) const {
    const yaml::Position at = source_->document.positions.value(pointer);
    yaml::Problem problem{source_->path.string(),  at.line,         at.column,
                          yaml::field_of(pointer), std::move(rule), std::move(cure)};
    if (std::ranges::find(*problems_, problem) == problems_->end())
      problems_->push_back(std::move(problem));
  }

  const Source* source_;
  std::string pointer_;
  Problems* problems_;
  const Json* object_ = nullptr;
};

// All the files as one.
class Kubeconfig {
 public:
  Kubeconfig(const std::vector<KubeconfigFile>& files, Problems& problems) : problems_(problems) {
    for (const KubeconfigFile& file : files) add(file);
  }

  const std::vector<Entry>& roots() const { return roots_; }

  std::string paths() const {
    std::vector<std::string> all;
    for (const Entry& root : roots_) all.push_back(root.source().path.string());
    return base::join(all, ", ");
  }

  // The entry named `name` in `list` ("clusters"), its content under `member` ("cluster").
  std::optional<Entry> find(const char* list, const char* member, const std::string& name) const {
    for (const Entry& root : roots_)
      for (const Entry& item : root.items(list))
        if (item.text("name") == name) return item.inside(member);
    return std::nullopt;
  }

  std::string choices(const char* list) const {
    std::set<std::string> names;
    for (const Entry& root : roots_)
      for (const Entry& item : root.items(list)) names.insert(item.text("name"));
    if (names.empty()) return "write one";
    return "choose one of " + base::join({names.begin(), names.end()}, ", ");
  }

 private:
  void add(const KubeconfigFile& file) {
    yaml::File read = yaml::read(file.text, file.path.string());
    problems_.insert(problems_.end(), read.problems.begin(), read.problems.end());
    if (read.documents.empty()) return;
    const Source& source = sources_.emplace_back(file.path, std::move(read.documents[0]));
    Entry root(source, "", problems_);
    if (read.documents.size() > 1)
      root.refuse("the file has more than one document", "keep one, without --- between");
    if (const std::string kind = root.text("kind"); !kind.empty() && kind != "Config")
      root.refuse("kind", "must be Config", "give a kubeconfig file");
    for (const char* list : {"clusters", "users", "contexts"}) refuse_twins(root, list);
    roots_.push_back(std::move(root));
  }

  static void refuse_twins(const Entry& root, const char* list) {
    std::set<std::string> names;
    for (const Entry& item : root.items(list)) {
      const std::string name = item.text("name");
      if (name.empty())
        item.refuse("name", "is missing", "give the entry a name");
      else if (!names.insert(name).second)
        item.refuse("name", "\"" + name + "\" stands twice in this list", "remove or rename one");
    }
  }

  Problems& problems_;
  std::list<Source> sources_;  // Entries point at them.
  std::vector<Entry> roots_;
};

std::string decoded(const Entry& entry, const char* key) {
  const std::string text = entry.text(key);
  if (text.empty()) return {};
  auto bytes = base::from_base64(base::trim(text));
  if (!bytes) {
    entry.refuse(key, "must be base64", "encode the PEM text with base64 -w0");
    return {};
  }
  return *std::move(bytes);
}

// `name` is a file's, `name`-data holds the text itself and wins.
Pem pem_at(const Entry& entry, const std::string& name) {
  const std::string data = name + "-data";
  const bool has_data = entry.has(data.c_str());
  const Entry::Named file = has_data ? Entry::Named{} : entry.file(name.c_str());
  const Pem pem{decoded(entry, data.c_str()), file.path};
  const std::string& text = has_data ? pem.text : file.text;
  if (!text.empty() && text.find("-----BEGIN ") == std::string::npos)
    entry.refuse(has_data ? data.c_str() : name.c_str(), "holds no PEM block",
                 "give PEM text, which begins with -----BEGIN");
  return pem;
}

bool is_url(const std::string& url, std::initializer_list<std::string_view> schemes) {
  return std::ranges::any_of(schemes, [&](std::string_view scheme) {
    return base::lower(url).starts_with(scheme) && url.size() > scheme.size() &&
           url[scheme.size()] != '/' && url.find_first_of(" \t\r\n?#") == std::string::npos;
  });
}

Cluster cluster_of(const Entry& entry) {
  Cluster cluster;
  cluster.server = net::base_url(entry.text("server"));
  if (cluster.server.empty())
    entry.refuse("server", "is missing", "add it, like https://10.0.0.1:6443");
  else if (!is_url(cluster.server, {"http://", "https://"}) ||
           cluster.server.find('@') != std::string::npos)
    entry.refuse("server", "must be an http:// or https:// URL without user or query",
                 "write it like https://10.0.0.1:6443");
  cluster.authority = pem_at(entry, "certificate-authority");
  cluster.insecure = entry.flag("insecure-skip-tls-verify");
  if (cluster.insecure && !cluster.authority.empty())
    entry.refuse("insecure-skip-tls-verify", "stands beside a certificate authority",
                 "remove one of the two");
  cluster.tls_server_name = entry.text("tls-server-name");
  cluster.proxy_url = entry.text("proxy-url");
  if (!cluster.proxy_url.empty() &&
      !is_url(cluster.proxy_url, {"http://", "https://", "socks5://"}))
    entry.refuse("proxy-url", "must be an http://, https:// or socks5:// URL",
                 "write it like http://10.0.0.2:3128");
  return cluster;
}

ExecPlugin plugin_of(const Entry& entry) {
  ExecPlugin plugin;
  plugin.api_version = entry.text("apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1")
    entry.refuse("apiVersion", "must be client.authentication.k8s.io/v1 or v1beta1",
                 "write the version that the plugin speaks");
  plugin.command = entry.text("command");
  if (plugin.command.empty()) entry.refuse("command", "is missing", "name the program to run");
  if (plugin.command.find('/') != std::string::npos)
    plugin.command =
        (fs::absolute(entry.source().path).parent_path() / plugin.command).lexically_normal();
  plugin.args = entry.texts("args");
  for (const Entry& variable : entry.items("env")) {
    const std::string name = variable.text("name");
    if (name.empty() || name.find('=') != std::string::npos)
      variable.refuse("name", "must name an environment variable", "give name and value");
    plugin.env.emplace_back(name, variable.text("value"));
  }
  plugin.install_hint = entry.text("installHint");
  plugin.provide_cluster_info = entry.flag("provideClusterInfo");
  if (entry.text("interactiveMode") == "Always")
    entry.refuse("interactiveMode", "Always needs a terminal, and there is none",
                 "write Never or IfAvailable if the plugin can do without");
  return plugin;
}

Impersonation impersonation_of(const Entry& entry) {
  Impersonation as{entry.text("as"), entry.text("as-uid"), entry.texts("as-groups")};
  const Entry extra = entry.inside("as-user-extra");
  for (const std::string& key : extra.keys()) as.extra[key] = extra.texts(key.c_str());
  if (as.user.empty() && as != Impersonation{})
    entry.refuse("as", "is missing beside as-uid, as-groups or as-user-extra",
                 "name the user to act as");
  return as;
}

User user_of(const Entry& entry) {
  User user;
  user.token = base::trim(entry.text("token"));
  user.token_file = entry.file("tokenFile").path;
  user.username = entry.text("username");
  user.password = entry.text("password");
  user.certificate = pem_at(entry, "client-certificate");
  user.key = pem_at(entry, "client-key");
  user.impersonation = impersonation_of(entry);
  if (user.certificate.empty() != user.key.empty())
    entry.refuse("client-certificate and client-key go together", "give both, or neither");
  const bool has_token = !user.token.empty() || !user.token_file.empty();
  if (has_token && !user.username.empty())
    entry.refuse("token and username are two ways to log in", "keep one");
  if (user.token.find_first_of("\r\n") != std::string::npos)
    entry.refuse("token", "has a line break in it", "write it on one line");
  if (entry.has("auth-provider"))
    entry.refuse("auth-provider", "is no longer known to Kubernetes clients",
                 "use exec with a credential plugin");
  // As in kubectl, what is written down wins over a plugin.
  if (entry.has("exec") && !has_token && user.username.empty())
    user.exec = plugin_of(entry.inside("exec"));
  return user;
}

// The name of the context, or nothing when that is a problem.
std::optional<std::string> context_name(const Kubeconfig& all, const std::string& chosen,
                                        Problems& problems) {
  if (!chosen.empty()) return chosen;
  for (const Entry& root : all.roots())
    if (const std::string current = root.text("current-context"); !current.empty()) return current;
  problems.push_back({all.paths(), 0, 0, "current-context", "is not set", all.choices("contexts")});
  return std::nullopt;
}

Config config_of(const Kubeconfig& all, const std::string& chosen, Problems& problems) {
  Config config;
  const auto name = context_name(all, chosen, problems);
  if (!name) return config;
  const auto context = all.find("contexts", "context", *name);
  if (!context) {
    problems.push_back({all.paths(), 0, 0, "contexts", "there is no context \"" + *name + "\"",
                        all.choices("contexts")});
    return config;
  }
  config.source = "context " + *name + " of " + context->source().path.string();
  if (const std::string space = context->text("namespace"); !space.empty()) config.space = space;

  const std::string cluster = context->text("cluster"), user = context->text("user");
  if (cluster.empty())
    context->refuse("cluster", "is missing", all.choices("clusters"));
  else if (const auto entry = all.find("clusters", "cluster", cluster))
    config.cluster = cluster_of(*entry);
  else
    context->refuse("cluster", "there is no cluster \"" + cluster + "\"", all.choices("clusters"));
  if (user.empty()) return config;  // Nobody in particular.
  if (const auto entry = all.find("users", "user", user))
    config.user = user_of(*entry);
  else
    context->refuse("user", "there is no user \"" + user + "\"", all.choices("users"));
  return config;
}

}  // namespace

base::Result<Config> read_kubeconfig(const std::vector<KubeconfigFile>& files,
                                     const std::string& context) {
  Problems problems;
  const Kubeconfig all(files, problems);
  // What is not even YAML hides everything else.
  if (!problems.empty()) return base::Error{base::ErrorCode::kInvalid, to_text(problems)};
  if (all.roots().empty())
    return base::error(base::ErrorCode::kInvalid, files.empty() ? "" : files[0].path.string(),
                       ": the file is empty; write a kubeconfig into it");
  Config config = config_of(all, context, problems);
  if (!problems.empty()) return base::Error{base::ErrorCode::kInvalid, to_text(problems)};
  return config;
}

}  // namespace kube
