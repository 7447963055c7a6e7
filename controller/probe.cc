#include "controller/probe.h"

namespace controller {
namespace {

constexpr base::Seconds kTimeout{10};
constexpr std::size_t kAnswerBytesMax = 64u << 10;

}  // namespace

base::Result<std::string> probe(net::Transport& transport, const std::string& url) {
  const auto reply =
      transport.send({.url = url, .body_bytes_max = kAnswerBytesMax}, kTimeout, std::stop_token());
  if (!reply) return net::error_of("no answer", reply.error());
  if (reply->status == 200) return net::tame(reply->body);
  return base::error(net::code_of_status(reply->status), net::describe_url(url), " answered ",
                     std::to_string(reply->status), ": ", net::tame(reply->body));
}

}  // namespace controller
