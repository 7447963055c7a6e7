#include "local_e2b/router/route.h"

#include <algorithm>
#include <array>

#include "libs/base/crypto.h"
#include "libs/base/json.h"
#include "libs/base/strings.h"
#include "local_e2b/control/answer.h"
#include "local_e2b/control/box_host.h"
#include "local_e2b/control/requests.h"

namespace local_e2b {
namespace {

constexpr std::array kInternal{"init",   "freeze",   "unfreeze", "fsfreeze",
                               "fsthaw", "collapse", "upgrade"};

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::variant<Destination, std::string> destination(std::string_view id, std::string_view port,
                                                   bool own_host) {
  const auto number = all_digits(port) ? base::parse_integer(port) : std::nullopt;
  if (!number || *number < 1 || *number > 65535)
    return "invalid sandbox port '" + std::string(port) + "'";
  const auto sandbox = parse_sandbox_id(id);
  if (!sandbox) return "invalid sandbox id '" + std::string(id) + "'";
  return Destination{*sandbox, static_cast<int>(*number), own_host};
}

}  // namespace

std::variant<Destination, std::string> find_destination(const aio::HttpHead& head) {
  const std::string host = base::lower(head.field("Host").value_or(""));
  const std::string name = host.substr(0, host.find(':'));
  const auto dot = name.find('.');
  const std::string label = name.substr(0, dot);
  const auto dash = label.find('-');
  if (dot != std::string::npos && dash != std::string::npos && all_digits(label.substr(0, dash)))
    return destination(std::string_view(label).substr(dash + 1), label.substr(0, dash), true);
  const auto id = head.field("E2b-Sandbox-Id"), port = head.field("E2b-Sandbox-Port");
  if (id && port) return destination(base::trim(*id), base::trim(*port), false);
  if (id) return "the header E2b-Sandbox-Port is missing";
  if (port) return "the header E2b-Sandbox-Id is missing";
  return "the host '" + host +
         "' is not <port>-<sandbox id>.<domain>, and there is no header E2b-Sandbox-Id";
}

bool is_internal(const std::string& path) {
  std::vector<std::string> segments;
  for (const auto& segment : base::split(path, '/')) {
    if (segment.empty() || segment == ".") continue;
    if (segment == "..") {
      if (!segments.empty()) segments.pop_back();
    } else {
      segments.push_back(base::lower(segment));
    }
  }
  return segments.size() == 1 &&
         std::find(kInternal.begin(), kInternal.end(), segments[0]) != kInternal.end();
}

aio::HttpReply bad_destination(const std::string& why) {
  return {.status = 400, .fields = {{"Content-Type", "text/plain"}}, .body = why + "\n"};
}

aio::HttpReply refused(const Destination& to, int status, const std::string& message) {
  return answer(status, {{"sandboxId", to.sandbox_id}, {"message", message}, {"code", status}});
}

aio::HttpReply not_running(const Destination& to) {
  return refused(to, 502, "The sandbox was not found");
}

aio::HttpReply port_closed(const Destination& to) {
  return answer(502, {{"sandboxId", to.sandbox_id},
                      {"message", "The sandbox is running but port is not open"},
                      {"port", to.port},
                      {"code", 502}});
}

bool may_pass(const Sandbox& sandbox, const Destination& to, const aio::HttpHead& head) {
  if (to.port == kEnvdPort || sandbox.allow_public_traffic) return true;
  return base::equal_secrets(head.field("E2b-Traffic-Access-Token").value_or(""),
                             sandbox.traffic_token);
}

bool may_wake(const Sandbox& sandbox, const Destination& to, const aio::HttpHead& head) {
  if (to.port != kEnvdPort) return may_pass(sandbox, to, head);
  return base::equal_secrets(head.field("X-Access-Token").value_or(""), sandbox.envd_token);
}

}  // namespace local_e2b
