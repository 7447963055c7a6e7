#include "cli/reach/attach_token.h"

#include "libs/base/strings.h"
#include "libs/kube/explain.h"
#include "libs/wire/attach.h"

namespace cli {

base::Result<std::string> request_attach_token(kube::Client& client, const std::string& space,
                                               const std::string& account) {
  const base::Json request{{"apiVersion", "authentication.k8s.io/v1"},
                           {"kind", "TokenRequest"},
                           {"spec", {{"audiences", {wire::kAttachAudience}}}}};
  const auto given = client.post("/api/v1/namespaces/" + base::percent_encode(space) +
                                     "/serviceaccounts/" + base::percent_encode(account) + "/token",
                                 request);
  if (!given) return kube::explained(given.error(), client);
  const base::Json* status = base::object_at(*given, "status");
  auto token = status ? base::text_at(*status, "token") : std::nullopt;
  if (!token)
    return base::error(base::ErrorCode::kUnavailable,
                       "the API server gave no token for serviceaccount ", space, "/", account);
  return *std::move(token);
}

}  // namespace cli
