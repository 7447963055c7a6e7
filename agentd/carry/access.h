#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "agentd/carry/carrier_parts.h"

namespace agentd {

// A way in was given, and is held.
struct Given {
  bool same_run = false;  // As the one that was held before.
};

// What a harness may: its credential, the way into its sandbox that was given for that, and when to
// ask again whether it still may.
class Access {
 public:
  // `parts` outlives it. `door`: the token that its door asks for, if it asks for one.
  Access(const CarrierParts& parts, std::optional<std::string> door);

  // Whether that is what it shows; then it is taken out, since it is nobody else's affair.
  bool accepts(std::optional<std::string>& token) const;

  // Once it has said hello.
  void begin(wire::SandboxName sandbox, std::optional<std::string> token);
  // No way into another sandbox is taken from then on.
  void bind_to(std::string uid) { uid_ = std::move(uid); }
  const wire::SandboxName& sandbox() const { return sandbox_; }
  // What the watch says of the sandbox.
  Standing standing() const { return parts_.directory.standing(sandbox_); }
  // Until its harness's credential ends; 0: never, as far as is known.
  std::int64_t expires_ms() const;

  // Asks for the way in.
  aio::Task<std::variant<NoWay, Given>> ask();
  const std::optional<Way>& way() const { return way_; }  // That was given last.
  // Nobody was met there: the next ask tells so.
  void failed() { failed_ = true; }
  bool holds() const;  // There is one whose token has not ended.

  // While there is a link: when to ask again, and the answer to a harness that brought its next
  // credential. On a new link it has its answer by the welcome.
  void begin_link() { answer_due_ = false; }
  std::optional<wire::Close> take(wire::Renew renewal);  // Something: why it is refused.
  base::Milliseconds due_in() const;                     // 0: now.
  aio::Task<std::variant<NoWay, Given>> ask_again();
  // True once for each that it brought.
  bool take_answer_due() { return std::exchange(answer_due_, false); }

 private:
  aio::Task<Answer> put_question(std::optional<RunOfWay> failed);
  void hold(Way way);
  base::Moment now() const { return parts_.clock.now(); }

  const CarrierParts& parts_;
  const std::optional<std::string> door_;  // Secret.
  wire::SandboxName sandbox_;
  std::optional<std::string> uid_, token_;
  std::optional<Way> way_;
  base::Moment ask_at_;  // Again.
  bool failed_ = false;
  bool brought_ = false, answer_due_ = false;
};

}  // namespace agentd
