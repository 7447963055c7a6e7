#include "controller/attach/reviewer.h"

#include <algorithm>

#include "libs/base/json.h"
#include "libs/base/strings.h"
#include "libs/wire/attach.h"

namespace controller {
namespace {

using base::ErrorCode;
using base::Json;

constexpr std::size_t kReasonBytesMax = 256;  // Of what an authorizer says.

std::vector<std::string> texts_of(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& each : list)
    if (each.is_string()) texts.push_back(each.get<std::string>());
  return texts;
}

std::string shown(const std::string& text) {
  return base::on_one_line(base::cut(text, kReasonBytesMax));
}

// A review that could not be made is nobody's refusal, even where it is ours that is forbidden.
base::Error not_told(const kube::Refusal& refusal) {
  if (refusal.reason == kube::Reason::kForbidden)
    return base::error(ErrorCode::kUnavailable,
                       "the controller may not ask the API server: ", refusal.message,
                       "; its ClusterRole must allow it");
  return {ErrorCode::kUnavailable, refusal.message};
}

}  // namespace

base::Result<Caller> ClusterReviewer::identify(const std::string& token, std::stop_token stop) {
  const Json asked = {{"apiVersion", "authentication.k8s.io/v1"},
                      {"kind", "TokenReview"},
                      {"spec", {{"token", token}, {"audiences", {wire::kAttachAudience}}}}};
  const auto told = client_.post("/apis/authentication.k8s.io/v1/tokenreviews", asked, stop);
  if (!told) return not_told(told.error());
  const Json* status = base::object_at(*told, "status");
  if (!status || !base::bool_at(*status, "authenticated").value_or(false))
    return base::error(ErrorCode::kDenied, "the token is not valid for the audience ",
                       wire::kAttachAudience);
  // An authenticator that knows no audiences answers without any: its tokens are for the API
  // server.
  const Json* audiences = base::array_at(*status, "audiences");
  const auto meant = audiences ? texts_of(*audiences) : std::vector<std::string>();
  if (std::find(meant.begin(), meant.end(), wire::kAttachAudience) == meant.end())
    return base::error(ErrorCode::kDenied, "the token is not meant for the audience ",
                       wire::kAttachAudience);
  const Json* user = base::object_at(*status, "user");
  Caller caller;
  if (user) caller.name = base::text_at(*user, "username").value_or("");
  if (caller.name.empty())
    return base::error(ErrorCode::kUnavailable, "the API server named no user for a valid token");
  caller.uid = base::text_at(*user, "uid").value_or("");
  if (const Json* groups = base::array_at(*user, "groups")) caller.groups = texts_of(*groups);
  if (const Json* extra = base::object_at(*user, "extra"))
    for (const auto& [key, values] : extra->items())
      if (values.is_array()) caller.extra[key] = texts_of(values);
  return caller;
}

base::Result<base::Done> ClusterReviewer::allow(const Caller& caller, const api::Key& sandbox,
                                                std::stop_token stop) {
  const Json asked = {{"apiVersion", "authorization.k8s.io/v1"},
                      {"kind", "SubjectAccessReview"},
                      {"spec",
                       {{"user", caller.name},
                        {"uid", caller.uid},
                        {"groups", caller.groups},
                        {"extra", caller.extra},
                        {"resourceAttributes",
                         {{"verb", "create"},
                          {"group", kube::kSandboxes.group},
                          {"version", kube::kSandboxes.version},
                          {"resource", kube::kSandboxes.plural},
                          {"subresource", "attach"},
                          {"namespace", sandbox.space},
                          {"name", sandbox.name}}}}}};
  const auto told = client_.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", asked, stop);
  if (!told) return not_told(told.error());
  const Json* status = base::object_at(*told, "status");
  if (!status) return base::error(ErrorCode::kUnavailable, "the API server's review has no status");
  if (base::bool_at(*status, "allowed").value_or(false)) return base::Done{};
  const std::string reason = base::text_at(*status, "reason").value_or("");
  // An authorizer that failed may have been the one to allow it.
  if (const auto failed = base::text_at(*status, "evaluationError");
      failed && !failed->empty() && !base::bool_at(*status, "denied").value_or(false))
    return base::error(ErrorCode::kUnavailable,
                       "the API server could not decide: ", shown(*failed));
  return base::error(ErrorCode::kDenied, caller.name, " may not create sandboxes/attach for ",
                     api::to_text(sandbox), reason.empty() ? "" : ": " + shown(reason),
                     "; a Role that allows it must be bound to them");
}

}  // namespace controller
