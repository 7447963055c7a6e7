#pragma once

#include <string>
#include <string_view>

#include "agentd/way/way.h"
#include "libs/aio/http_client.h"

// One question to the attach service and its answer as HTTP has them (docs/design/attach.md): pure.
namespace agentd {

// Whether it can be a bearer's token at all (RFC 6750 §2.1): what cannot would be another header.
bool is_token(std::string_view text);

// `host` for the field Host, `prefix` what stands before the service's own path.
aio::HttpRequest attach_request(const wire::SandboxName& sandbox,
                                const std::optional<std::string>& token,
                                const std::optional<RunOfWay>& failed, const std::string& host,
                                const std::string& prefix);

// What the service says, word by word, or kUnavailable where it is not the service that speaks: a
// proxy's 403 is nobody's refusal.
Answer attach_answer(const aio::HttpReply& reply, const wire::SandboxName& asked);

}  // namespace agentd
