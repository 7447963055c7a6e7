#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agentd/carry/access.h"
#include "agentd/carry/carrier_parts.h"
#include "agentd/carry/executor_link.h"
#include "agentd/carry/harness_link.h"
#include "agentd/carry/next_step.h"
#include "agentd/carry/roster.h"
#include "agentd/carry/unanswered.h"
#include "agentd/door/caller.h"
#include "libs/wire/session/pulse.h"

namespace agentd {

// Carries one harness: its link, and behind it a link to the executor, which is made anew as often
// as it breaks. It ends the handshakes of both, pings, and renewals; all else goes on as it came.
//
//   listen: harness -> executor      bring: executor -> harness
//   pursue: the executor link, and what to do when that ends (next_step.h)
//   keep_access: asks again whether the harness may      watch: silence, and who does not hang up
class Carrier final : public Roster::Member {
 public:
  Carrier(const CarrierParts& parts, std::shared_ptr<aio::Stream> harness, Caller caller);
  ~Carrier() override;

  aio::Task<> run();  // Until the harness's link is over.
  void leave(wire::Close close) override;

 private:
  aio::Task<> serve();
  aio::Task<> talk();
  aio::Task<> work();
  aio::Task<> keep_up();
  aio::Task<> until(std::function<bool()> holds);
  aio::Task<bool> greet();
  std::optional<wire::Close> judge(wire::Message message);
  aio::Task<> listen();
  aio::Task<bool> hand_on(Carried frame);
  void want(const Carried& frame);
  aio::Task<> refuse(std::string why);
  aio::Task<> part(wire::Close last);

  aio::Task<> pursue();
  aio::Task<Ending> attempt(bool ask);
  aio::Task<Ending> carry(std::shared_ptr<ExecutorLink> link);
  aio::Task<> bring(std::shared_ptr<ExecutorLink> link);
  aio::Task<bool> hand_back(ExecutorLink& link, Carried frame);
  aio::Task<> welcome(ExecutorLink& link);
  Situation situation(bool asked) const;
  aio::Task<bool> follow(Step step);  // Whether to ask for a way then.
  void note(const Ending& ending, const Step& step) const;

  aio::Task<> keep_access();
  aio::Task<> ask_again();
  aio::Task<> watch();
  void look_at_harness();
  void look_at_executor();

  base::Moment now() const { return parts_.clock.now(); }

  const CarrierParts& parts_;
  const Caller caller_;
  HarnessLink harness_;
  wire::Pulse harness_pulse_;
  bool handing_on_ = false, handing_back_ = false;  // Then the one is not heard, or the other.
  std::optional<base::Moment> leaving_;
  bool gone_ = false;    // The harness has had its last word,
  bool parted_ = false;  // and the executor has heard it.

  wire::Hello hello_;
  Access access_;
  base::Moment alone_since_;
  bool welcomed_ = false, quiesced_ = false, demanded_ = false;
  Unanswered unanswered_;  // By the executor of now.
  bool unheard_ = false;   // There were some when the last one was lost, or bytes came since.
  bool wanted_ = false;    // Either began since the last attempt did.
  base::Milliseconds lease_{};
  int failures_ = 0;

  std::shared_ptr<ExecutorLink> executor_;
  std::string link_;      // The name that the harness is to resume.
  bool resumed_ = false;  // It has.
  wire::Ceiling ceiling_{};
  std::optional<Ending> ending_;
  aio::Condition moved_;  // Any of these.
};

}  // namespace agentd
