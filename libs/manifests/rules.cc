#include "libs/manifests/rules.h"

#include <algorithm>

#include "libs/base/strings.h"
#include "libs/yaml/reader.h"

namespace manifests {

using base::Json;

namespace {

constexpr std::string_view kRemake = "put the old value back, or declare another object";
constexpr std::size_t kNameMax = 63;

const Json& empty_list() {
  static const Json kEmpty = Json::array();
  return kEmpty;
}

const Json& empty_object() {
  static const Json kEmpty = Json::object();
  return kEmpty;
}

const Json& member_or(const Json& object, const char* key, const Json& otherwise) {
  const auto found = object.find(key);
  return found == object.end() ? otherwise : *found;
}

bool name_fits(const Json& self, const Json*) {
  return base::text_at(self["metadata"], "name").value_or("").size() <= kNameMax;
}

bool same(const Json& self, const Json* old) { return self == *old; }

// A list keyed by name: its order says nothing.
bool same_env(const Json& self, const Json* old) {
  const auto by_name = [](const Json& spec) {
    std::map<std::string, Json> variables;
    for (const Json& item : member_or(spec, "env", empty_list()))
      variables[base::text_at(item, "name").value_or("")] = item;
    return variables;
  };
  return by_name(self) == by_name(*old);
}

bool same_provider_metadata(const Json& self, const Json* old) {
  return member_or(self, "providerMetadata", empty_object()) ==
         member_or(*old, "providerMetadata", empty_object());
}

bool stays_terminated(const Json& self, const Json* old) {
  return *old != "Terminated" || self == "Terminated";
}

bool heartbeat_fits(const Json& self, const Json*) {
  return base::integer_at(self, "heartbeatSeconds").value_or(0) * 3 <=
         base::integer_at(self, "timeoutSeconds").value_or(0);
}

bool same_on_timeout(const Json& self, const Json* old) {
  return self["onTimeout"] == (*old)["onTimeout"];
}

bool is_for_idleness(const Json& self, const Json*) {
  return self.contains("idleSeconds") || base::text_at(self, "idleAction") != "Terminate";
}

bool has_what_it_wakes(const Json& self, const Json*) {
  if (!base::bool_at(self, "wakeOnAttach").value_or(false)) return true;
  return self.contains("idleSeconds") && base::text_at(self, "idleAction") != "Terminate";
}

bool one_value(const Json& self, const Json*) {
  return self.contains("value") != self.contains("valueFrom");
}

bool keys_not_ours(const Json& self, const Json*) {
  return std::ranges::none_of(self.items(), [](const auto& entry) {
    return std::string_view(entry.key()).starts_with("sandfleet.");
  });
}

bool keys_fit(const Json& self, const Json*) {
  constexpr std::size_t kKeyMax = 128;
  return std::ranges::all_of(self.items(), [](const auto& entry) {
    const auto letters =
        std::ranges::count_if(entry.key(), [](char byte) { return (byte & 0xC0) != 0x80; });
    return letters >= 1 && static_cast<std::size_t>(letters) <= kKeyMax;
  });
}

bool identity_holds(const Json& self, const Json* old) {
  const auto id = base::text_at(*old, "sandboxID").value_or("");
  return id.empty() || id == base::text_at(self, "sandboxID").value_or("") ||
         base::integer_at(self, "epoch").value_or(0) > base::integer_at(*old, "epoch").value_or(0);
}

constexpr Rule kRules[] = {
    {Kind::kSandbox, "", "metadata.name must have at most 63 characters", "/metadata/name",
     "shorten it", false, name_fits},
    {Kind::kSandbox, "/spec", "env cannot be changed", "/env", kRemake, true, same_env},
    {Kind::kSandbox, "/spec", "providerMetadata cannot be changed", "/providerMetadata", kRemake,
     true, same_provider_metadata},
    {Kind::kSandbox, "/spec/providerRef", "providerRef cannot be changed", "", kRemake, true, same},
    {Kind::kSandbox, "/spec/template", "template cannot be changed", "", kRemake, true, same},
    {Kind::kSandbox, "/spec/desiredState", "desiredState Terminated is final", "",
     "put Terminated back, or declare another object", true, stays_terminated},
    {Kind::kSandbox, "/spec/keepAlive",
     "heartbeatSeconds must be at most a third of timeoutSeconds", "/heartbeatSeconds",
     "lower it, or raise timeoutSeconds", false, heartbeat_fits},
    {Kind::kSandbox, "/spec/keepAlive", "keepAlive.onTimeout cannot be changed", "/onTimeout",
     kRemake, true, same_on_timeout},
    {Kind::kSandbox, "/spec/lifecycle", "idleAction Terminate needs idleSeconds", "/idleAction",
     "say by idleSeconds when, or remove it", false, is_for_idleness},
    {Kind::kSandbox, "/spec/lifecycle", "wakeOnAttach needs idleSeconds and idleAction Pause",
     "/wakeOnAttach", "say by idleSeconds when it is paused, or remove it", false,
     has_what_it_wakes},
    {Kind::kSandbox, "/spec/env/*", "give exactly one of value and valueFrom", "",
     "keep one of the two", false, one_value},
    {Kind::kSandbox, "/spec/providerMetadata", "keys that begin with \"sandfleet.\" are reserved",
     "", "choose other keys", false, keys_not_ours},
    {Kind::kSandbox, "/spec/providerMetadata", "keys must have between 1 and 128 characters", "",
     "choose other keys", false, keys_fit},
    {Kind::kSandbox, "/status", "sandboxID changes only when epoch grows", "/sandboxID",
     "raise epoch with it", true, identity_holds},
    {Kind::kProvider, "", "metadata.name must have at most 63 characters", "/metadata/name",
     "shorten it", false, name_fits},
    {Kind::kProvider, "/spec/api/url", "api.url cannot be changed", "", kRemake, true, same},
};

// The value at a pointer, or nothing.
const Json* at_pointer(const Json& object, const std::string& pointer) {
  const Json::json_pointer path(pointer);
  return object.contains(path) ? &object.at(path) : nullptr;
}

// The pointers that a rule's place stands for in this object.
std::vector<std::string> places(const Json& object, std::string_view at) {
  if (!at.ends_with("/*")) return {std::string(at)};
  const std::string list(at.substr(0, at.size() - 2));
  std::vector<std::string> items;
  if (const Json* value = at_pointer(object, list))
    for (std::size_t index = 0; index < value->size(); ++index)
      items.push_back(yaml::pointer_to(list, index));
  return items;
}

void check_rule(const Rule& rule, const Json& object, const Json* before,
                std::vector<Violation>& found) {
  for (const std::string& place : places(object, rule.at)) {
    const Json* self = at_pointer(object, place);
    const Json* old = before ? at_pointer(*before, place) : nullptr;
    if (!self || (rule.compares && !old) || rule.holds(*self, old)) continue;
    found.push_back(
        {place + std::string(rule.field), std::string(rule.message), std::string(rule.cure)});
  }
}

}  // namespace

std::span<const Rule> rules() { return kRules; }

std::vector<Violation> check_rules(Kind kind, const Json& object, const Json* before) {
  std::vector<Violation> found;
  for (const Rule& rule : kRules)
    if (rule.kind == kind) check_rule(rule, object, before, found);
  return found;
}

}  // namespace manifests
