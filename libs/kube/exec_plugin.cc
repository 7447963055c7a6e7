#include "libs/kube/exec_plugin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "libs/base/crypto.h"
#include "libs/base/fd.h"
#include "libs/base/files.h"
#include "libs/base/json.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"
#include "libs/net/transport.h"

extern char** environ;

namespace kube {

using base::error;
using base::ErrorCode;
using base::Json;
using base::Result;

namespace {

constexpr std::size_t kStderrKept = 2'000;

base::Error failed(const ExecPlugin& plugin, std::string_view why) {
  std::string hint = plugin.install_hint.empty() ? "" : "; " + net::tame(plugin.install_hint);
  return error(ErrorCode::kUnavailable, "the credential plugin ", plugin.command, " ", why, hint);
}

struct Pipe {
  base::Fd out, in;  // Read from `out`.
};

std::optional<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{base::Fd(ends[0]), base::Fd(ends[1])};
}

// KUBERNETES_EXEC_INFO: how a plugin learns what it is asked for.
std::string exec_info(const ExecPlugin& plugin, const Cluster& cluster) {
  Json spec{{"interactive", false}};
  if (plugin.provide_cluster_info) {
    Json about{{"server", cluster.server}};
    std::string authority = cluster.authority.text;
    if (!cluster.authority.file.empty())
      if (auto read = base::read_file(cluster.authority.file)) authority = *std::move(read);
    if (!authority.empty()) about["certificate-authority-data"] = base::to_base64(authority);
    if (!cluster.tls_server_name.empty()) about["tls-server-name"] = cluster.tls_server_name;
    if (!cluster.proxy_url.empty()) about["proxy-url"] = cluster.proxy_url;
    if (cluster.insecure) about["insecure-skip-tls-verify"] = true;
    spec["cluster"] = about;
  }
  return base::to_text(
      Json{{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", spec}});
}

std::vector<std::string> environment_of(const ExecPlugin& plugin, const Cluster& cluster) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : plugin.env) variables[name] = value;
  variables["KUBERNETES_EXEC_INFO"] = exec_info(plugin, cluster);
  std::vector<std::string> all;
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

// The plugin while it runs; whoever goes away takes it and what it started along.
class Running {
 public:
  Running(pid_t pid, Pipe out, Pipe err)
      : pid_(pid), ended_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
    out_ = std::move(out.out);
    err_ = std::move(err.out);
    for (const base::Fd* pipe : {&out_, &err_}) ::fcntl(pipe->get(), F_SETFL, O_NONBLOCK);
  }
  ~Running() {
    if (pid_ < 0) return;
    ::kill(-pid_, SIGKILL);
    reap();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  const std::string& printed() const { return printed_; }
  const std::string& complaint() const { return complaint_; }

  bool is_watched() const { return static_cast<bool>(ended_); }

  enum class News { kEnded, kTooMuch, kTooLate, kStopped };
  News attend(base::Moment deadline, int bell) {
    for (;;) {
      const auto left = deadline - base::SystemClock().now();
      if (left <= base::Milliseconds(0)) return News::kTooLate;
      pollfd all[] = {{bell, POLLIN, 0},
                      {ended_.get(), POLLIN, 0},
                      {out_.get(), POLLIN, 0},
                      {err_.get(), POLLIN, 0}};
      if (::poll(all, std::size(all), static_cast<int>(left.count())) < 0 && errno != EINTR)
        return News::kTooLate;
      if (all[0].revents != 0) return News::kStopped;
      // Looked at before the pipes: once it has ended, what they hold is all there will be.
      const bool ended = all[1].revents != 0;
      drain(out_, printed_, kPluginOutputMax + 1);
      drain(err_, complaint_, kStderrKept);
      if (printed_.size() > kPluginOutputMax) return News::kTooMuch;
      if (ended) return News::kEnded;
    }
  }

  int reap() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }

 private:
  // Keeps the last `kept` bytes of what is there now: at most what a pipe holds, so that an endless
  // writer does not keep us here.
  static void drain(base::Fd& pipe, std::string& into, std::size_t kept) {
    constexpr int kReadsMax = 8;
    char buffer[16 << 10];
    for (int reads = 0; pipe && reads < kReadsMax; ++reads) {
      const ssize_t got = ::read(pipe.get(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return;
      if (got == 0) {
        pipe.reset();
        return;
      }
      into.append(buffer, static_cast<std::size_t>(got));
      if (into.size() > kept) into.erase(0, into.size() - kept);
    }
  }

  pid_t pid_;
  base::Fd ended_, out_, err_;
  std::string printed_, complaint_;
};

// The child's pid, or an errno below zero.
pid_t spawn(const ExecPlugin& plugin, const Cluster& cluster, const Pipe& out, const Pipe& err) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out.in.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err.in.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(
      &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> words{plugin.command};
  words.insert(words.end(), plugin.args.begin(), plugin.args.end());
  std::vector<std::string> variables = environment_of(plugin, cluster);
  pid_t pid = -1;
  const int trouble = ::posix_spawnp(&pid, plugin.command.c_str(), &actions, &attributes,
                                     pointers(words).data(), pointers(variables).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return trouble == 0 ? pid : -trouble;
}

std::string how_it_ended(int status, const std::string& complaint) {
  std::string how = WIFSIGNALED(status) ? "was killed by signal " + std::to_string(WTERMSIG(status))
                                        : "ended with " + std::to_string(WEXITSTATUS(status));
  const std::string said = net::tame(base::trim(complaint));
  return said.empty() ? how : how + ": " + said;
}

}  // namespace

Result<PluginAnswer> read_plugin_answer(const ExecPlugin& plugin, std::string_view printed) {
  const auto json = base::parse_json(printed);
  if (!json || base::text_at(*json, "kind") != "ExecCredential")
    return failed(plugin, "did not print an ExecCredential");
  if (base::text_at(*json, "apiVersion") != plugin.api_version)
    return failed(plugin, "answered in another version than " + plugin.api_version);
  const Json* status = base::object_at(*json, "status");
  if (!status) return failed(plugin, "printed no status");

  PluginAnswer answer{base::text_at(*status, "token").value_or(""),
                      base::text_at(*status, "clientCertificateData").value_or(""),
                      base::text_at(*status, "clientKeyData").value_or("")};
  if (answer.certificate.empty() != answer.key.empty())
    return failed(plugin,
                  "printed a certificate without its key, or a key without its certificate");
  if (answer.token.empty() && answer.certificate.empty())
    return failed(plugin, "printed neither a token nor a certificate");
  if (answer.token.find_first_of("\r\n") != std::string::npos)
    return failed(plugin, "printed a token with a line break");
  if (const auto text = base::text_at(*status, "expirationTimestamp")) {
    const auto expires = base::parse_rfc3339(*text);
    if (!expires) return failed(plugin, "printed an expirationTimestamp that is no time");
    answer.expires = *expires;
  }
  return answer;
}

Result<PluginAnswer> run_plugin(const ExecPlugin& plugin, const Cluster& cluster,
                                base::Milliseconds timeout, std::stop_token stop) {
  const base::Moment deadline = base::SystemClock().now() + timeout;
  auto out = make_pipe(), err = make_pipe();
  const base::Fd bell(::eventfd(0, EFD_CLOEXEC));
  if (!out || !err || !bell) return failed(plugin, std::strerror(errno));
  const std::stop_callback ring(stop, [&] { ::eventfd_write(bell.get(), 1); });

  const pid_t pid = spawn(plugin, cluster, *out, *err);
  if (pid < 0) return failed(plugin, "cannot be run: " + std::string(std::strerror(-pid)));
  out->in.reset();
  err->in.reset();
  Running running(pid, *std::move(out), *std::move(err));
  if (!running.is_watched()) return failed(plugin, "cannot be watched");
  switch (running.attend(deadline, bell.get())) {
    case Running::News::kEnded:
      break;
    case Running::News::kTooMuch:
      return failed(plugin, "printed more than " + std::to_string(kPluginOutputMax) + " bytes");
    case Running::News::kTooLate:
      return failed(plugin, "took longer than " + std::to_string(timeout.count()) + " ms");
    case Running::News::kStopped:
      return error(ErrorCode::kCancelled, "the credential plugin ", plugin.command,
                   " was cancelled");
  }
  const int status = running.reap();
  if (status != 0) return failed(plugin, how_it_ended(status, running.complaint()));
  return read_plugin_answer(plugin, running.printed());
}

}  // namespace kube
