#include "libs/kube/right.h"

namespace kube {

using base::Json;

namespace {

constexpr const char* kAsk = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

std::string type_of(const Right& right) {
  return right.resource + (right.group.empty() ? "" : "." + right.group);
}

}  // namespace

std::string to_text(const Right& right) {
  return right.verb + " " + type_of(right) +
         (right.subresource.empty() ? "" : "/" + right.subresource) +
         (right.name.empty() ? "" : " " + right.name) +
         (right.space.empty() ? " in the whole cluster" : " in namespace " + right.space);
}

std::string can_i(const Right& right) {
  return "kubectl auth can-i " + right.verb + " " + type_of(right) +
         (right.name.empty() ? "" : "/" + right.name) +
         (right.subresource.empty() ? "" : " --subresource=" + right.subresource) +
         (right.space.empty() ? " --all-namespaces" : " -n " + right.space);
}

Answer<bool> may(Client& client, const Right& right, std::stop_token stop) {
  const Json asked = {{"apiVersion", "authorization.k8s.io/v1"},
                      {"kind", "SelfSubjectAccessReview"},
                      {"spec",
                       {{"resourceAttributes",
                         {{"verb", right.verb},
                          {"group", right.group},
                          {"resource", right.resource},
                          {"subresource", right.subresource},
                          {"namespace", right.space},
                          {"name", right.name}}}}}};
  TRY(const Json told, client.post(kAsk, asked, std::move(stop)));
  const Json* status = base::object_at(told, "status");
  return status && base::bool_at(*status, "allowed").value_or(false);
}

}  // namespace kube
