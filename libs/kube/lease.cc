#include "libs/kube/lease.h"

#include "libs/base/time.h"
#include "libs/kube/micro_time.h"

namespace kube {

using base::Json;

namespace {

std::optional<base::WallTime> time_at(const Json& spec, const char* key) {
  const auto text = base::text_at(spec, key);
  const auto time = text ? base::parse_rfc3339(*text) : base::Error{base::ErrorCode::kInvalid, ""};
  return time ? std::optional(*time) : std::nullopt;
}

Json to_json(const LeaseRecord& record, const api::Key& key) {
  Json metadata = {{"name", key.name}, {"namespace", key.space}};
  if (!record.resource_version.empty()) metadata["resourceVersion"] = record.resource_version;
  Json spec = {{"leaseDurationSeconds", record.duration.count()},
               {"leaseTransitions", record.transitions}};
  if (!record.holder.empty()) spec["holderIdentity"] = record.holder;
  if (record.acquired) spec["acquireTime"] = to_micro_time(*record.acquired);
  if (record.renewed) spec["renewTime"] = to_micro_time(*record.renewed);
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)}};
}

}  // namespace

LeaseRecord lease_from_json(const Json& object) {
  LeaseRecord record{.resource_version = resource_version_of(object)};
  const Json* spec = base::object_at(object, "spec");
  if (!spec) return record;
  record.holder = base::text_at(*spec, "holderIdentity").value_or("");
  record.duration = base::Seconds(base::integer_at(*spec, "leaseDurationSeconds").value_or(15));
  record.acquired = time_at(*spec, "acquireTime");
  record.renewed = time_at(*spec, "renewTime");
  record.transitions = base::integer_at(*spec, "leaseTransitions").value_or(0);
  return record;
}

Answer<std::optional<LeaseRecord>> LeaseObject::get(std::stop_token stop) {
  const auto found = client_.get(kLeases, key_, std::move(stop));
  if (found) return std::optional(lease_from_json(*found));
  if (found.error().reason == Reason::kNotFound) return std::optional<LeaseRecord>();
  return found.error();
}

Answer<LeaseRecord> LeaseObject::put(const LeaseRecord& record, std::stop_token stop) {
  const Json object = to_json(record, key_);
  TRY(const Json written, record.resource_version.empty()
                              ? client_.create(kLeases, object, {}, std::move(stop))
                              : client_.update(kLeases, object, {}, {}, std::move(stop)));
  return lease_from_json(written);
}

}  // namespace kube
