#include "controller/credentials.h"

#include <algorithm>
#include <utility>

#include "libs/base/reading.h"
#include "libs/base/strings.h"

namespace controller {
namespace {

constexpr std::size_t kKeyBytesMax = 4096;

std::string name_of(char control) {
  if (control == '\n' || control == '\r') return "a line break";
  if (control == '\t') return "a tab";
  return "a control character";
}

// As it can stand in a header of a request: blanks around it are an editor's, a line break within
// it is a mistake. `where`: what holds it; a key itself is never told.
base::Result<std::string> usable(std::string_view content, const std::string& where) {
  const std::string_view key = base::trim(content);
  if (key.empty()) return base::error(base::ErrorCode::kInvalid, where, " holds no API key");
  const auto control =
      std::ranges::find_if(key, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  if (control == key.end()) return std::string(key);
  return base::error(base::ErrorCode::kInvalid, "the API key in ", where, " has ",
                     name_of(*control), " after its first ", std::to_string(control - key.begin()),
                     " characters, and no key has one: it is one line");
}

}  // namespace

base::Result<Credentials> Credentials::read(const std::vector<std::string>& files,
                                            std::string environment) {
  Credentials credentials;
  credentials.environment_ = std::move(environment);
  for (const auto& each : files) {
    const auto equals = each.find('=');
    const bool named = equals != std::string::npos && each.find('/') > equals;
    const std::string provider = named ? each.substr(0, equals) : "";
    if (!credentials.files_.emplace(provider, named ? each.substr(equals + 1) : each).second)
      return base::error(base::ErrorCode::kInvalid, "--api-key-file ", each,
                         ": there is one for that provider already; give each provider one file");
  }
  return credentials;
}

base::Result<std::string> Credentials::api_key(api::ResourceStore& store, const std::string& space,
                                               const api::SandboxProvider& provider) const {
  const std::string& name = provider.metadata.key.name;
  if (const auto& secret = provider.spec.credentials) {
    TRY(const std::string content, store.get_secret({space, secret->name}, secret->key));
    return usable(content, "Secret " + space + "/" + secret->name + " (" + secret->key + ")");
  }
  for (const std::string& candidate : {name, std::string()}) {
    const auto file = files_.find(candidate);
    if (file == files_.end()) continue;
    // Read again for each use, so nothing that would make us wait.
    TRY(const std::string content, base::read_regular_file(file->second, kKeyBytesMax));
    return usable(content, file->second);
  }
  if (!environment_.empty()) return usable(environment_, "the environment");
  return base::error(base::ErrorCode::kNotFound, "SandboxProvider ", name,
                     " has no API key: name a Secret in spec.credentialsSecretRef, or give "
                     "--api-key-file, or set SANDFLEET_API_KEY");
}

}  // namespace controller
