#include "controller/transports.h"

#include <filesystem>

#include "libs/base/crypto.h"
#include "libs/base/files.h"
#include "libs/base/log.h"
#include "libs/e2b/client.h"
#include "libs/net/curl_transport.h"

namespace controller {
namespace {

constexpr std::size_t kExecutorBytesMax = 512u << 20;

}  // namespace

std::shared_ptr<e2b::Cloud> Transports::connect(const api::SandboxProvider& provider,
                                                const base::Clock& clock, const ApiKey& api_key) {
  return std::make_shared<e2b::Client>(
      transport_of(apis_, provider.spec.ca_bundle), clock,
      e2b::Settings{.api_url = provider.spec.api_url,
                    .api_key = [api_key, provider] { return api_key(provider); }});
}

net::Transport& Transports::inside(const api::ProviderSpec& provider) {
  return transport_of(insides_, provider.ca_bundle);
}

net::Transport& Transports::transport_of(ByAuthorities& all, const std::string& authorities) {
  std::lock_guard lock(mutex_);
  auto& transport = all[authorities];
  if (!transport)
    transport =
        net::curl_transport({.user_agent = "sandfleet-controller", .ca_bundle = authorities});
  return *transport;
}

base::Result<ExecutorFile> read_executor(const std::string& path) {
  std::error_code ignored;
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "sandfleet-executor";
  auto content = base::read_file(path.empty() ? beside.string() : path, kExecutorBytesMax);
  if (!content && path.empty() && content.error().code == base::ErrorCode::kNotFound) {
    base::log::warn("no executor to send: only templates that have one can be used",
                    {{"looked_at", beside.string()}});
    return ExecutorFile{};
  }
  if (!content) return content.error();
  std::string digest = base::to_hex(base::sha256(*content));
  return ExecutorFile{*std::move(content), std::move(digest)};
}

}  // namespace controller
