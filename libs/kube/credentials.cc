#include "libs/kube/credentials.h"

#include <sys/stat.h>

#include "libs/base/crypto.h"
#include "libs/base/reading.h"
#include "libs/base/strings.h"

namespace kube {

using base::error;
using base::ErrorCode;
using base::Moment;
using base::Result;

namespace {

constexpr std::size_t kFileBytesMax = 1u << 20;

void add_impersonation(const Impersonation& as, net::Headers& headers) {
  if (as.user.empty()) return;
  headers.add("Impersonate-User", as.user);
  if (!as.uid.empty()) headers.add("Impersonate-Uid", as.uid);
  for (const std::string& group : as.groups) headers.add("Impersonate-Group", group);
  for (const auto& [key, values] : as.extra)
    for (const std::string& value : values)
      headers.add("Impersonate-Extra-" + base::percent_encode(key), value);
}

bool is_valid(const PluginAnswer& answer, base::WallTime at) {
  return !answer.expires || at < *answer.expires;
}

}  // namespace

// --- Files.

std::optional<KeptFile::Look> KeptFile::look(const std::filesystem::path& path) {
  struct stat seen{};
  if (::stat(path.c_str(), &seen) != 0) return std::nullopt;
  return Look{seen.st_dev, seen.st_ino, static_cast<std::uint64_t>(seen.st_size),
              seen.st_mtim.tv_sec * 1'000'000'000 + seen.st_mtim.tv_nsec};
}

Result<std::string> KeptFile::text(Moment now) {
  const auto seen = look(path_);
  if (text_ && seen == seen_ && now - read_at_ < kRereadAfter) return *text_;
  auto read = base::read_regular_file(path_, kFileBytesMax);
  if (!read && !text_) return read.error();
  if (read) {
    text_ = *std::move(read);
    seen_ = seen;
    read_at_ = now;
  }
  return *text_;
}

// --- Credentials.

Credentials::Credentials(const Cluster& cluster, const User& user, const base::Clock& clock,
                         RunPlugin run)
    : cluster_(cluster), user_(user), clock_(clock), run_(std::move(run)) {
  if (!user.token_file.empty()) token_file_.emplace(user.token_file);
  if (!user.certificate.file.empty()) certificate_file_.emplace(user.certificate.file);
  if (!user.key.file.empty()) key_file_.emplace(user.key.file);
}

RunPlugin Credentials::run_bounded() {
  return [](const ExecPlugin& plugin, const Cluster& cluster, std::stop_token stop) {
    return run_plugin(plugin, cluster, kPluginTimeout, std::move(stop));
  };
}

Result<Proof> Credentials::proof(std::stop_token stop) {
  std::lock_guard lock(mutex_);
  Proof proof;
  PluginAnswer answer;
  if (user_.exec) {
    TRY(answer, plugin_answer(std::move(stop)));
  } else {
    TRY(answer.token, static_token());
  }
  if (!answer.token.empty())
    proof.headers.add("Authorization", "Bearer " + answer.token);
  else if (!user_.username.empty())
    proof.headers.add("Authorization",
                      "Basic " + base::to_base64(user_.username + ":" + user_.password));
  add_impersonation(user_.impersonation, proof.headers);

  TRY(proof.certificate, pem(user_.certificate, certificate_file_, clock_.now()));
  TRY(proof.key, pem(user_.key, key_file_, clock_.now()));
  if (proof.certificate.empty()) {
    proof.certificate = std::move(answer.certificate);
    proof.key = std::move(answer.key);
  }
  return proof;
}

void Credentials::refused(const Proof& shown) {
  std::lock_guard lock(mutex_);
  if (token_file_) token_file_->doubt();
  if (!answer_) return;
  const auto authorization = shown.headers.find("Authorization");
  const bool of_this_answer = answer_->token.empty() ? shown.certificate == answer_->certificate
                                                     : authorization == "Bearer " + answer_->token;
  stale_ = stale_ || of_this_answer;
}

Result<std::string> Credentials::static_token() {
  if (!token_file_) return user_.token;
  const auto text = token_file_->text(clock_.now());
  if (!text && user_.token.empty()) return text.error();
  const std::string token(text ? base::trim(*text) : std::string_view(user_.token));
  if (token.empty() || token.find_first_of("\r\n") != std::string::npos)
    return error(ErrorCode::kInvalid, user_.token_file.string(), " holds no token on one line");
  return token;
}

Result<std::string> Credentials::pem(const Pem& pem, std::optional<KeptFile>& file, Moment now) {
  if (!file) return pem.text;
  return file->text(now);
}

Result<PluginAnswer> Credentials::plugin_answer(std::stop_token stop) {
  const base::WallTime wall = clock_.wall();
  const bool usable = answer_ && !stale_ && is_valid(*answer_, wall);
  if (usable && is_valid(*answer_, wall + kRenewBefore)) return *answer_;
  if (ran_at_ && clock_.now() - *ran_at_ < kPluginRest) {
    if (usable || !trouble_) return *answer_;
    return *trouble_;
  }
  auto fresh = run_(*user_.exec, cluster_, std::move(stop));
  if (!fresh && fresh.error().code == ErrorCode::kCancelled) return fresh.error();
  ran_at_ = clock_.now();
  if (fresh) {
    answer_ = *fresh;
    trouble_.reset();
    stale_ = false;
  } else {
    trouble_ = fresh.error();
  }
  if (!fresh && usable) return *answer_;
  return fresh;
}

}  // namespace kube
