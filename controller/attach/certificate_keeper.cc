#include "controller/attach/certificate_keeper.h"

#include "libs/base/crypto.h"
#include "libs/base/json.h"

namespace controller {
namespace {

using base::ErrorCode;
using base::Json;

constexpr int kTriesMax = 5;  // Against other replicas.

// A Secret's value; nothing when it is missing or no base64.
std::string value_of(const Json& secret, const char* key) {
  const Json* data = base::object_at(secret, "data");
  const auto text = data ? base::text_at(*data, key) : std::nullopt;
  const auto bytes = text ? base::from_base64(*text) : base::Result<std::string>(std::string());
  return bytes ? *bytes : std::string();
}

TlsMaterial material_in(const Json& secret) {
  return {.authority = {value_of(secret, "authority.crt"), value_of(secret, "authority.key")},
          .bundle = value_of(secret, "ca.crt"),
          .serving = {value_of(secret, "tls.crt"), value_of(secret, "tls.key")}};
}

Json data_of(const TlsMaterial& material) {
  return {{"authority.crt", base::to_base64(material.authority.certificate)},
          {"authority.key", base::to_base64(material.authority.key)},
          {"ca.crt", base::to_base64(material.bundle)},
          {"tls.crt", base::to_base64(material.serving.certificate)},
          {"tls.key", base::to_base64(material.serving.key)}};
}

Json metadata_of(const std::string& space, std::string_view name) {
  return {{"namespace", space},
          {"name", name},
          {"labels", {{"app.kubernetes.io/managed-by", "sandfleet-controller"}}}};
}

bool another_was_faster(kube::Reason reason) {
  return reason == kube::Reason::kAlreadyExists || reason == kube::Reason::kConflict ||
         reason == kube::Reason::kNotFound;
}

}  // namespace

CertificateKeeper::CertificateKeeper(kube::Client& client, const base::Clock& clock,
                                     KeeperSettings settings)
    : client_(client), clock_(clock), settings_(std::move(settings)) {}

base::Result<TlsMaterial> CertificateKeeper::turn(std::stop_token stop) {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    TRY(const auto kept, look(stop));
    std::optional<TlsMaterial> next;
    if (settings_.ours) {
      TRY(next,
          next_material(kept ? kept->material : std::nullopt, settings_.terms, clock_.wall()));
    } else if (!kept) {
      return base::error(ErrorCode::kUnavailable, "there is no Secret ", settings_.space, "/",
                         settings_.secret, " yet: whoever issues certificates has to make it");
    }
    if (next) {
      TRY(const bool put_down, put(kept, *next, stop));
      if (!put_down) continue;
    }
    const TlsMaterial material = next ? *next : *kept->material;
    const auto usable = is_usable(material, clock_.wall());
    if (!usable)
      return base::error(ErrorCode::kInvalid, "Secret ", settings_.space, "/", settings_.secret,
                         ": ", usable.error().message);
    CHECK_OK(publish(material.bundle, stop));
    return material;
  }
  return base::error(ErrorCode::kUnavailable, "Secret ", settings_.space, "/", settings_.secret,
                     " was written by others at each try");
}

base::Result<std::optional<CertificateKeeper::Kept>> CertificateKeeper::look(std::stop_token stop) {
  auto got = client_.get(kube::kSecrets, {settings_.space, settings_.secret}, stop);
  if (!got && got.error().reason == kube::Reason::kNotFound) return std::optional<Kept>();
  if (!got) return base::Error(got.error());
  const TlsMaterial material = material_in(*got);
  return std::optional(Kept{*std::move(got), material});
}

base::Result<bool> CertificateKeeper::put(const std::optional<Kept>& before,
                                          const TlsMaterial& material, std::stop_token stop) {
  kube::Answer<Json> written = [&] {
    if (!before)
      return client_.create(kube::kSecrets,
                            {{"apiVersion", "v1"},
                             {"kind", "Secret"},
                             {"metadata", metadata_of(settings_.space, settings_.secret)},
                             {"type", "Opaque"},
                             {"data", data_of(material)}},
                            {}, stop);
    const api::Metadata seen = kube::identity_of(before->secret);
    return client_.merge(kube::kSecrets, {settings_.space, settings_.secret},
                         {{"data", data_of(material)}}, {seen.uid, seen.resource_version}, {},
                         stop);
  }();
  if (written) return true;
  if (another_was_faster(written.error().reason)) return false;
  return base::Error(written.error());
}

base::Result<base::Done> CertificateKeeper::publish(const std::string& bundle,
                                                    std::stop_token stop) {
  const auto got = client_.get(kube::kConfigMaps, {settings_.space, settings_.authorities}, stop);
  if (got) {
    const Json* data = base::object_at(*got, "data");
    if (data && base::text_at(*data, "ca.crt") == bundle) return base::Done{};
  } else if (got.error().reason != kube::Reason::kNotFound) {
    return base::Error(got.error());
  }
  const auto written =
      client_.apply(kube::kConfigMaps,
                    {{"apiVersion", "v1"},
                     {"kind", "ConfigMap"},
                     {"metadata", metadata_of(settings_.space, settings_.authorities)},
                     {"data", {{"ca.crt", bundle}}}},
                    true, {}, stop);
  if (!written) return base::Error(written.error());
  return base::Done{};
}

}  // namespace controller
