#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "agentd/way/line.h"
#include "agentd/way/way.h"
#include "libs/aio/loop.h"

namespace agentd {

struct AttachClientSettings {
  base::Milliseconds patience{15'000};  // For one question, from the connection to the reply.
  std::size_t questions_max = 256;      // Under way at once; more are told to come later.
};

// Asks the attach service. Those who ask the same at the same time share one question, which goes
// on when one of them leaves; nothing is remembered beyond it. It outlives whoever asks.
class AttachClient final : public WaysIn {
 public:
  AttachClient(aio::Executor executor, std::unique_ptr<Line> line,
               AttachClientSettings settings = {});

  aio::Task<Answer> ask(wire::SandboxName sandbox, std::optional<std::string> token) override;

 private:
  using Key = std::tuple<std::string, std::string, std::optional<std::string>>;
  struct Question {
    explicit Question(aio::Executor executor) : answered(std::move(executor)) {}
    std::optional<Answer> answer;
    aio::Condition answered;
  };

  aio::Task<> put(Key key, std::shared_ptr<Question> question);
  aio::Task<Answer> converse(wire::SandboxName sandbox, std::optional<std::string> token);

  const aio::Executor executor_;
  const std::unique_ptr<Line> line_;
  const AttachClientSettings settings_;
  std::map<Key, std::shared_ptr<Question>> questions_;
  aio::TaskGroup tasks_;  // Last: they use all of the above.
};

}  // namespace agentd
