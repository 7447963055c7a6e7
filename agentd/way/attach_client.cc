#include "agentd/way/attach_client.h"

#include <utility>

#include "agentd/way/attach_exchange.h"

namespace agentd {
namespace {

constexpr base::Seconds kAskAgain{1};
constexpr std::size_t kReplyBytesMax = 64u << 10;

NoWay unavailable(std::string why) {
  return {wire::NoEntry::kUnavailable, std::move(why), kAskAgain};
}

}  // namespace

AttachClient::AttachClient(aio::Executor executor, std::unique_ptr<Line> line,
                           AttachClientSettings settings)
    : line_(std::move(line)),
      settings_(settings),
      questions_(std::move(executor), settings.questions_max,
                 [this](Key key) { return put(std::move(key)); }) {}

aio::Task<Answer> AttachClient::ask(wire::SandboxName sandbox, std::optional<std::string> token,
                                    std::optional<RunOfWay> failed) {
  if (token && !is_token(*token))
    co_return NoWay{wire::NoEntry::kDenied, "what was shown is no token of a ServiceAccount"};
  Key key{sandbox.space, sandbox.name, std::move(token), std::move(failed)};
  auto answer = co_await questions_.get(std::move(key));
  if (!answer) co_return unavailable("too many questions to the attach service at once");
  co_return *std::move(answer);
}

aio::Task<Answer> AttachClient::put(Key key) {
  auto [space, name, token, failed] = std::move(key);
  auto answer = co_await aio::within(converse({space, name}, token, failed), settings_.patience);
  if (!answer) co_return unavailable("the attach service did not answer in time");
  co_return *std::move(answer);
}

aio::Task<Answer> AttachClient::converse(wire::SandboxName sandbox,
                                         std::optional<std::string> token,
                                         std::optional<RunOfWay> failed) {
  auto stream = co_await line_->open(settings_.patience);
  if (!stream) co_return unavailable("cannot ask the attach service: " + stream.error().message);
  aio::HttpRequest request = attach_request(sandbox, token, failed, line_->host(), line_->prefix());
  const auto reply = co_await aio::exchange(*std::move(stream), std::move(request),
                                            settings_.patience, kReplyBytesMax);
  if (!reply) co_return unavailable("the attach service: " + reply.error().message);
  co_return attach_answer(*reply, sandbox);
}

}  // namespace agentd
