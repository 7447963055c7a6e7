#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "libs/base/clock.h"
#include "libs/kube/config.h"
#include "libs/kube/exec_plugin.h"
#include "libs/net/transport.h"

namespace kube {

inline constexpr base::Seconds kRereadAfter{60};    // Also files that seem unchanged.
inline constexpr base::Seconds kPluginTimeout{60};  // Of one run.
inline constexpr base::Seconds kPluginRest{5};      // Between two runs that bring nothing new.
inline constexpr base::Seconds kRenewBefore{10};    // The time that a plugin's answer names.

// A file's text, read again when the file looks changed, and once a minute.
class KeptFile {
 public:
  explicit KeptFile(std::filesystem::path path) : path_(std::move(path)) {}
  // The last good text, where the file cannot be read now.
  base::Result<std::string> text(base::Moment now);
  // The next look reads it again.
  void doubt() { seen_.reset(); }

 private:
  struct Look {
    std::uint64_t device = 0, inode = 0, bytes = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Look&) const = default;
  };
  static std::optional<Look> look(const std::filesystem::path& path);

  const std::filesystem::path path_;
  std::optional<Look> seen_;
  base::Moment read_at_{};
  std::optional<std::string> text_;
};

// What proves to a server who we are, as of now.
struct Proof {
  net::Headers headers = {};               // Authorization and Impersonate-*.
  std::string certificate = {}, key = {};  // PEM; empty: none.
  bool operator==(const Proof&) const = default;
};

using RunPlugin =
    std::function<base::Result<PluginAnswer>(const ExecPlugin&, const Cluster&, std::stop_token)>;

// The credentials of one user, fresh at every look: files that rotate, plugins whose answers
// expire. Safe to share between threads; while a plugin runs, all who ask wait for it.
class Credentials {
 public:
  Credentials(const Cluster& cluster, const User& user, const base::Clock& clock,
              RunPlugin run = run_bounded());
  base::Result<Proof> proof(std::stop_token stop);
  // The server took this proof for nobody's: the next one is made anew, as far as that may help.
  void refused(const Proof& shown);

 private:
  static RunPlugin run_bounded();
  base::Result<std::string> static_token();
  base::Result<PluginAnswer> plugin_answer(std::stop_token stop);
  static base::Result<std::string> pem(const Pem& pem, std::optional<KeptFile>& file,
                                       base::Moment now);

  const Cluster cluster_;
  const User user_;
  const base::Clock& clock_;
  const RunPlugin run_;

  std::mutex mutex_;
  std::optional<KeptFile> token_file_, certificate_file_, key_file_;
  std::optional<PluginAnswer> answer_;
  std::optional<base::Error> trouble_;  // Of the last run.
  std::optional<base::Moment> ran_at_;  // When the last run ended.
  bool stale_ = false;                  // The server refused the answer.
};

}  // namespace kube
