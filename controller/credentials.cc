#include "controller/credentials.h"

#include <filesystem>
#include <utility>

#include "libs/base/files.h"
#include "libs/base/strings.h"

namespace controller {
namespace {

constexpr std::size_t kKeyBytesMax = 4096;

// Where a pipe or a terminal stands, whoever reads waits for whoever writes, and for ever.
base::Result<std::string> read_key_file(const std::filesystem::path& path) {
  std::error_code failed;
  const auto found = std::filesystem::status(path, failed);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found))
    return base::error(base::ErrorCode::kInvalid, path.string(),
                       " is not a regular file; put the API key in one, as it is read again for "
                       "each use");
  return base::read_file(path, kKeyBytesMax);
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
  if (const auto& secret = provider.spec.credentials)
    return store.get_secret({space, secret->name}, secret->key);
  for (const std::string& candidate : {name, std::string()}) {
    const auto file = files_.find(candidate);
    if (file == files_.end()) continue;
    TRY(const std::string content, read_key_file(file->second));
    const std::string key(base::trim(content));
    if (!key.empty()) return key;
    return base::error(base::ErrorCode::kInvalid, file->second, " holds no API key");
  }
  if (!environment_.empty()) return environment_;
  return base::error(base::ErrorCode::kNotFound, "SandboxProvider ", name,
                     " has no API key: name a Secret in spec.credentialsSecretRef, or give "
                     "--api-key-file, or set SANDFLEET_API_KEY");
}

}  // namespace controller
