#include "libs/kube/explain.h"

#include <algorithm>
#include <regex>

#include "libs/base/strings.h"
#include "libs/kube/right.h"

namespace kube {

using base::Error;
using base::error;
using base::ErrorCode;
using base::Json;

namespace {

Error with_cure(const Refusal& refusal, const std::string& cure) {
  return {refusal.code, refusal.message + "; " + cure, refusal.retry_after};
}

// As the server's RBAC words it: User "bob" cannot list resource "sandboxes" in API group
// "sandfleet.dev" in the namespace "team".
std::string missing_right(const std::string& message) {
  static const std::regex kWords(
      R"~(cannot ([a-z]+) resource "([^"/]+)(?:/([^"]+))?" in API group "([^"]*)"(?: in the namespace "([^"]+)")?)~");
  std::smatch words;
  if (!std::regex_search(message, words, kWords))
    return "ask whoever rules the cluster for that right";
  const Right right{.verb = words[1],
                    .group = words[4],
                    .resource = words[2],
                    .subresource = words[3],
                    .space = words[5]};
  return "the right to " + to_text(right) +
         " is missing: ask for a role that has it, and see with '" + can_i(right) + "'";
}

bool says(const Refusal& refusal, std::string_view words) {
  return refusal.message.find(words) != std::string::npos;
}

std::string cure_of(const Refusal& refusal, const Config& config) {
  switch (refusal.reason) {
    case Reason::kNoAnswer:
      // Nobody was asked: who we are could not be told, and that says itself what to do.
      if (refusal.code != ErrorCode::kUnavailable || says(refusal, "credential plugin")) return {};
      if (says(refusal, "certificate"))
        return "see that the certificate authority in " + config.source + " is that of " +
               config.cluster.server;
      return "see that the cluster is up, and that " + config.cluster.server +
             " is its address (from " + config.source + ")";
    case Reason::kUnauthorized:
      return "the cluster does not know you by " + config.source +
             ": log in again, or renew the token or certificate there";
    case Reason::kForbidden:
      return missing_right(refusal.message);
    case Reason::kConflict:
    case Reason::kPatchUnfit:
      return "it changed meanwhile: look again, and repeat if you still mean it";
    case Reason::kTimeout:
      return "it may have been done all the same: look before you repeat it";
    case Reason::kTooManyRequests:
      return "try again later";
    default:
      return {};
  }
}

std::vector<std::string> versions_of(const Json& groups) {
  const std::string group = kSandboxes.group;
  std::vector<std::string> versions;
  for (const Json& each : groups["groups"]) {
    if (base::text_at(each, "name") != group) continue;
    const Json* served = base::array_at(each, "versions");
    for (std::size_t i = 0; served && i < served->size(); ++i)
      versions.push_back(base::text_at((*served)[i], "version").value_or(""));
  }
  return versions;
}

}  // namespace

Error explain(const Refusal& refusal, const Config& config) {
  const std::string cure = cure_of(refusal, config);
  return cure.empty() ? Error(refusal) : with_cure(refusal, cure);
}

bool is_unserved(const Refusal& refusal) {
  return refusal.status == 404 && refusal.reason != Reason::kNotFound;
}

Error explain_unserved(const Refusal& refusal, const Config& config, const Answer<Json>& groups) {
  if (!groups && groups.error().reason == Reason::kNoAnswer) return explain(groups.error(), config);
  if (!groups || !base::array_at(*groups, "groups"))
    return error(ErrorCode::kUnavailable, config.cluster.server,
                 " answers, but it is no Kubernetes API server; correct the server in ",
                 config.source);
  const auto versions = versions_of(*groups);
  const std::string ours = kSandboxes.version;
  if (versions.empty())
    return error(ErrorCode::kUnavailable, "the cluster at ", config.cluster.server,
                 " has no definition of Sandbox (sandfleet.dev); ", kInstall);
  if (std::ranges::find(versions, ours) == versions.end())
    return error(ErrorCode::kUnavailable, "the cluster serves sandfleet.dev as ",
                 base::join(versions, ", "), ", and this program speaks ", ours,
                 "; use the sandfleet of that release, or ", kInstall);
  return error(ErrorCode::kUnavailable, refusal.message.substr(0, refusal.message.find(':')),
               ": the cluster has only some of the definitions of sandfleet.dev; ", kInstall);
}

Error explained(const Refusal& refusal, Client& client) {
  if (!is_unserved(refusal)) return explain(refusal, client.config());
  return explain_unserved(refusal, client.config(), client.fetch("/apis"));
}

}  // namespace kube
