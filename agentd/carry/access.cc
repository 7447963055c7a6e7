#include "agentd/carry/access.h"

#include <algorithm>
#include <utility>

#include "agentd/carry/carrier_words.h"
#include "agentd/carry/token_end.h"
#include "libs/base/crypto.h"

namespace agentd {
namespace {

// A name may pass to another Sandbox while a harness works in the one that had it.
Answer only_into(const std::optional<std::string>& uid, const wire::SandboxName& sandbox,
                 Answer answer) {
  const auto* way = std::get_if<Way>(&answer);
  if (!way || !uid || way->uid == *uid) return answer;
  return NoWay{wire::NoEntry::kEnded,
               "Sandbox " + to_text(sandbox) + " was deleted, and another has its name"};
}

bool is_denied(const Answer& answer) {
  const auto* none = std::get_if<NoWay>(&answer);
  return none && none->why == wire::NoEntry::kDenied;
}

}  // namespace

Access::Access(const CarrierParts& parts, std::optional<std::string> door)
    : parts_(parts), door_(std::move(door)), ask_at_(parts.clock.now() + kFarAhead) {}

bool Access::accepts(std::optional<std::string>& token) const {
  if (!door_) return true;
  const auto shown = std::exchange(token, std::nullopt);
  return shown && base::equal_secrets(*shown, *door_);
}

void Access::begin(wire::SandboxName sandbox, std::optional<std::string> token) {
  sandbox_ = std::move(sandbox);
  token_ = std::move(token);
}

std::int64_t Access::expires_ms() const {
  const auto end = token_ ? end_of_token(*token_) : std::nullopt;
  if (!end) return 0;
  return std::max<std::int64_t>((*end - parts_.clock.wall()).count(), 1);
}

aio::Task<Answer> Access::put_question(std::optional<RunOfWay> failed) {
  Answer answer =
      only_into(uid_, sandbox_, co_await parts_.ways.ask(sandbox_, token_, std::move(failed)));
  const auto* none = std::get_if<NoWay>(&answer);
  parts_.counts.asked(none ? to_word(none->why) : "Way");
  co_return answer;
}

// A no to the credential of before says nothing of the one that came meanwhile. Who goes on
// bringing others is told so when the next is refused, too.
aio::Task<std::variant<NoWay, Given>> Access::ask() {
  std::optional<RunOfWay> failed;
  if (std::exchange(failed_, false) && way_) failed = run_of(*way_);
  const std::optional<std::string> shown = token_;
  Answer answer = co_await put_question(failed);
  if (is_denied(answer) && token_ != shown) {
    answer_due_ |= std::exchange(brought_, false);
    answer = co_await put_question(failed);
  }
  if (auto* none = std::get_if<NoWay>(&answer)) co_return std::move(*none);
  Way& way = std::get<Way>(answer);
  const Given given{way_ && run_of(*way_) == run_of(way)};
  hold(std::move(way));
  co_return given;
}

bool Access::holds() const { return way_ && way_->expires > parts_.clock.wall(); }

// A quarter of the time is left to chance: not all ask at once who came at once. Where the clocks
// of both differ, it is not asked all the time.
void Access::hold(Way way) {
  const base::Milliseconds holds = way.expires - parts_.clock.wall();
  const auto longest = std::clamp(holds - parts_.times.ask_before_end,
                                  parts_.times.ask_after_silence, parts_.times.ask_every);
  const double part = 1 - parts_.jitter() / 4;
  ask_at_ = now() + base::Milliseconds(
                        static_cast<std::int64_t>(part * static_cast<double>(longest.count())));
  way_ = std::move(way);
}

std::optional<wire::Close> Access::take(wire::Renew renewal) {
  if (!renewal.token)
    return close_of(wire::CloseReason::kDenied, "agentd takes a token that is shown");
  if (!accepts(renewal.token))
    return close_of(wire::CloseReason::kDenied, "it is not the token that this agentd asks for");
  token_ = std::move(renewal.token);
  brought_ = true;
  return std::nullopt;
}

base::Milliseconds Access::due_in() const {
  if (brought_) return {};
  return std::max(ask_at_ - now(), base::Milliseconds(0));
}

aio::Task<std::variant<NoWay, Given>> Access::ask_again() {
  answer_due_ |= std::exchange(brought_, false);
  auto answer = co_await ask();
  if (std::holds_alternative<NoWay>(answer)) ask_at_ = now() + parts_.times.ask_after_silence;
  co_return answer;
}

}  // namespace agentd
