#include "controller/attach/certificate_keeper.h"

#include <utility>

namespace controller {
namespace {

using base::ErrorCode;

constexpr const char* kBundle = "ca.crt";

std::string value_of(const ObjectData& data, const char* name) {
  const auto found = data.find(name);
  return found == data.end() ? std::string() : found->second;
}

TlsMaterial material_in(const ObjectData& data) {
  return {.authority = {value_of(data, "authority.crt"), value_of(data, "authority.key")},
          .bundle = value_of(data, kBundle),
          .serving = {value_of(data, "tls.crt"), value_of(data, "tls.key")}};
}

void put(ObjectData& data, const TlsMaterial& material) {
  data["authority.crt"] = material.authority.certificate;
  data["authority.key"] = material.authority.key;
  data[kBundle] = material.bundle;
  data["tls.crt"] = material.serving.certificate;
  data["tls.key"] = material.serving.key;
}

}  // namespace

CertificateKeeper::CertificateKeeper(kube::Client& client, const base::Clock& clock,
                                     KeeperSettings settings)
    : clock_(clock),
      settings_(std::move(settings)),
      secret_(client, kube::kSecrets, {settings_.space, settings_.secret}),
      authorities_(client, kube::kConfigMaps, {settings_.space, settings_.authorities}) {}

base::Result<TlsMaterial> CertificateKeeper::turn(const std::stop_token& stop) {
  TRY(TlsMaterial material, settings_.ours ? renewed(stop) : found(stop));
  const auto usable = is_usable(material, clock_.wall());
  if (!usable)
    return base::error(ErrorCode::kInvalid, "Secret ", settings_.space, "/", settings_.secret, ": ",
                       usable.error().message);
  CHECK_OK(publish(material.bundle, stop));
  return material;
}

base::Result<TlsMaterial> CertificateKeeper::found(const std::stop_token& stop) {
  TRY(const ObjectData data, secret_.read(stop));
  if (!data.empty()) return material_in(data);
  return base::error(ErrorCode::kUnavailable, "there is no Secret ", settings_.space, "/",
                     settings_.secret, " yet: whoever issues certificates has to make it");
}

base::Result<TlsMaterial> CertificateKeeper::renewed(const std::stop_token& stop) {
  TlsMaterial material;
  const auto change = [&](ObjectData& data) -> base::Result<bool> {
    material = material_in(data);
    const auto present = data.empty() ? std::nullopt : std::optional(material);
    TRY(auto next, next_material(present, settings_.terms, clock_.wall()));
    if (!next) return false;
    material = *std::move(next);
    put(data, material);
    return true;
  };
  CHECK_OK(secret_.edit(change, stop));
  return material;
}

base::Result<base::Done> CertificateKeeper::publish(const std::string& bundle,
                                                    const std::stop_token& stop) {
  const auto change = [&](ObjectData& data) -> base::Result<bool> {
    return std::exchange(data[kBundle], bundle) != bundle;
  };
  return authorities_.edit(change, stop);
}

}  // namespace controller
