#pragma once

#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "agentd/way/line.h"
#include "agentd/way/way.h"
#include "libs/aio/loop.h"
#include "libs/aio/shared.h"

namespace agentd {

struct AttachClientSettings {
  base::Milliseconds patience{15'000};  // For one question, from the connection to the reply.
  std::size_t questions_max = 256;      // Under way at once; more are told to come later.
};

// Asks the attach service. Those who ask the same at the same time share one question
// (aio::Shared).
class AttachClient final : public WaysIn {
 public:
  AttachClient(aio::Executor executor, std::unique_ptr<Line> line,
               AttachClientSettings settings = {});

  aio::Task<Answer> ask(wire::SandboxName sandbox, std::optional<std::string> token,
                        std::optional<RunOfWay> failed) override;

 private:
  using Key =
      std::tuple<std::string, std::string, std::optional<std::string>, std::optional<RunOfWay>>;

  aio::Task<Answer> put(Key key);
  aio::Task<Answer> converse(wire::SandboxName sandbox, std::optional<std::string> token,
                             std::optional<RunOfWay> failed);

  const std::unique_ptr<Line> line_;
  const AttachClientSettings settings_;
  aio::Shared<Key, Answer> questions_;  // Last: they use all of the above.
};

}  // namespace agentd
