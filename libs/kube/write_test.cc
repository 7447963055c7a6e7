#include "libs/kube/write.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

TEST(WriteOf, NamesWhatARequestChanges) {
  const struct {
    const char *method, *path;
    std::optional<Write> write;
  } kCases[] = {
      {"PATCH", "/apis/sandfleet.dev/v1alpha1/namespaces/team/sandboxes/box?fieldManager=x",
       Write{"patch", "sandboxes"}},
      {"PATCH", "/apis/sandfleet.dev/v1alpha1/namespaces/team/sandboxes/box/status?a=b/c",
       Write{"patch", "sandboxes/status"}},
      {"PATCH", "/apis/sandfleet.dev/v1alpha1/sandboxproviders/default",
       Write{"patch", "sandboxproviders"}},
      {"DELETE", "/apis/sandfleet.dev/v1alpha1/namespaces/team/sandboxes/box",
       Write{"delete", "sandboxes"}},
      {"DELETE", "/apis/sandfleet.dev/v1alpha1/namespaces/team/sandboxes",
       Write{"deletecollection", "sandboxes"}},
      {"POST", "/apis/events.k8s.io/v1/namespaces/team/events", Write{"create", "events"}},
      {"PUT", "/apis/coordination.k8s.io/v1/namespaces/own/leases/one", Write{"update", "leases"}},
      {"POST", "/api/v1/namespaces/own/secrets", Write{"create", "secrets"}},
      {"DELETE", "/api/v1/namespaces/team", Write{"delete", "namespaces"}},
      {"POST", "/apis/authentication.k8s.io/v1/tokenreviews", std::nullopt},
      {"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", std::nullopt},
      {"GET", "/api/v1/namespaces/own/secrets/one", std::nullopt},
      {"POST", "/version", std::nullopt},
      {"POST", "/api/v1", std::nullopt},
      {"POST", "", std::nullopt},
  };
  for (const auto& each : kCases)
    EXPECT_EQ(write_of(each.method, each.path), each.write) << each.method << " " << each.path;
}

}  // namespace
}  // namespace kube
