#include "controller/reconcile/binding.h"

#include <algorithm>
#include <string>

#include "controller/reconcile/looks.h"
#include "libs/api/annotations.h"
#include "libs/api/reasons.h"

namespace controller {
namespace {

// A provider that is full is asked by few, and woken for (controller/gate/room.h): until then no
// create is sent, and none is meant.
Action when_there_is_room(const Observation& seen, Action action) {
  if (!seen.no_room || std::holds_alternative<Wait>(action)) return action;
  return wait(api::reason::kProviderQuotaExceeded, seen.no_room->message,
              seen.no_room->retry_after.value_or(kLookAgain));
}

Action create(const Observation& seen, const api::Attempt& attempt) {
  return when_there_is_room(seen, unless_held(seen, Create{attempt}));
}

Action adopt_or_begin(const Observation& seen) {
  if (!seen.memory.listed || seen.memory.listed->started < seen.began)
    return look_list(seen, api::reason::kPending, "waiting for a complete list of the provider");
  const auto& sandboxes = seen.memory.listed->sandboxes;
  if (sandboxes.empty() && !settled(seen))
    return look_list(seen, api::reason::kResolvingCreate,
                     "the record of earlier creates was lost; none is sent before it is certain "
                     "that they made nothing");
  if (sandboxes.empty()) return when_there_is_room(seen, RecordIntent{});
  // The record of it was lost: the newest epoch is the one that was ours.
  const auto newest = std::ranges::max_element(sandboxes, {}, &Sighting::epoch);
  return RecordIntent{.adopted = api::Attempt{.nonce = newest->nonce,
                                              .epoch = std::max<std::int64_t>(1, newest->epoch)}};
}

Action resolve_create(const Observation& seen, const api::Attempt& attempt) {
  if (settled(seen)) {
    // The next one is meant when it may be sent.
    const Action next = create(seen, attempt);
    return std::holds_alternative<Wait>(next) ? next : RecordIntent{.epoch = attempt.epoch};
  }
  const auto& sent = seen.memory.sent;
  const std::string why = sent && sent->failure
                              ? "nobody knows what came of a create: " + sent->failure->message
                              : "a create was not answered";
  return look_list(seen, api::reason::kResolvingCreate,
                   why + "; no other is sent before it is certain that it made nothing");
}

Action create_again(const Observation& seen, const api::Attempt& attempt) {
  const Sent& sent = *seen.memory.sent;
  if (!sent.failure->definite()) return resolve_create(seen, attempt);
  const bool answered = sent.failure->kind != e2b::CreateFailure::Kind::kNotSent;
  if (answered && sent.attempt.number == attempt.number)
    return CountRefusal{{attempt.nonce, attempt.epoch, attempt.number + 1}};
  return create(seen, attempt);
}

}  // namespace

Action bring_to_life(const Observation& seen) {
  const auto attempt = api::attempt_of(seen.wanted.metadata);
  if (!attempt) return adopt_or_begin(seen);
  if (!has_finalizer(seen.wanted)) return RecordIntent{.adopted = attempt};
  const Memory& memory = seen.memory;
  const bool sent = memory.sent && memory.sent->attempt.nonce == attempt->nonce;
  if (sent && !memory.sent->id.empty()) return unless_held(seen, Bind{memory.sent->id, *attempt});
  if (const auto* found = std::get_if<Found>(&seen.actual))
    return unless_held(seen, Bind{found->info.id, *attempt});
  if (memory.listed)
    for (const auto& sandbox : memory.listed->sandboxes)
      if (sandbox.epoch > attempt->epoch)
        return RecordIntent{.adopted =
                                api::Attempt{.nonce = sandbox.nonce, .epoch = sandbox.epoch}};
  if (sent) return create_again(seen, *attempt);
  if (memory.recorded_nonce == attempt->nonce && memory.listed) return create(seen, *attempt);
  return resolve_create(seen, *attempt);
}

}  // namespace controller
