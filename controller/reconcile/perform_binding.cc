#include "controller/reconcile/pass.h"
#include "libs/api/annotations.h"
#include "libs/base/crypto.h"

// How the Reconciler comes to an E2B sandbox: what it means to create, the create, and the bind.
namespace controller {
namespace {

// For want of room. The gate knows for how long, and every decision asks it.
bool is_left_to_gate(const e2b::CreateFailure& failure) {
  return failure.kind == e2b::CreateFailure::Kind::kQuota || Gate::kept_for_room(failure);
}

}  // namespace

Outcome Reconciler::perform(const Pass& pass, const RecordIntent& step) {
  const api::Attempt attempt =
      step.adopted.value_or(api::Attempt{.nonce = base::random_hex(16), .epoch = step.epoch});
  const Outcome outcome = write_metadata(pass, attempt, true);
  if (outcome.error) return outcome;
  parts_.memories.update(pass.uid(), [&](Memory& memory) {
    memory.sent.reset();
    if (step.adopted) return;
    memory.recorded_nonce = attempt.nonce;
    memory.unclear_send_ended.reset();
  });
  return outcome;
}

Outcome Reconciler::perform(const Pass& pass, const CountRefusal& step) {
  return write_metadata(pass, step.next, true);
}

base::Result<e2b::NewSandbox> Reconciler::new_sandbox(const api::Sandbox& wanted,
                                                      const Session& session,
                                                      const api::Attempt& attempt) {
  e2b::NewSandbox made{.template_id = wanted.spec.template_id,
                       .timeout = session.provider->spec.first_lease,
                       .auto_pause = wanted.spec.keep_alive.on_timeout == api::OnTimeout::kPause,
                       .metadata = wanted.spec.provider_metadata,
                       .idempotency_key = idempotency_key(attempt)};
  made.metadata[key::kFleet] = parts_.store.fleet_id();
  made.metadata[key::kNamespace] = wanted.metadata.key.space;
  made.metadata[key::kName] = wanted.metadata.key.name;
  made.metadata[key::kUid] = wanted.metadata.uid;
  made.metadata[key::kEpoch] = std::to_string(attempt.epoch);
  made.metadata[key::kNonce] = attempt.nonce;
  for (const auto& variable : wanted.spec.env) {
    if (variable.secret) {
      TRY(made.env[variable.name],
          parts_.store.get_secret({wanted.metadata.key.space, variable.secret->name},
                                  variable.secret->key));
    } else {
      made.env[variable.name] = variable.value.value_or("");
    }
  }
  return made;
}

Outcome Reconciler::perform(const Pass& pass, const Create& step) {
  auto request = new_sandbox(pass.wanted(), *pass.session, step.attempt);
  if (!request) return failed(request.error());
  return begin(pass, "Create", true,
               [this, wanted = pass.wanted(), session = *pass.session, attempt = step.attempt,
                request = *std::move(request)](std::stop_token stop) {
                 e2b::Cloud& cloud = session.gate->as(Priority::kCreate);
                 parts_.memories.update(wanted.metadata.uid, [&](Memory& memory) {
                   memory.progress = Progress{.step = "its answer", .since = parts_.clock.now()};
                 });
                 auto made = cloud.create(request, stop);
                 if (made) way_in_.keep(name_of_provider(session), wanted, *made, cloud, stop);
                 parts_.memories.update(wanted.metadata.uid, [&](Memory& memory) {
                   memory.progress.reset();
                   memory.sent = Sent{.attempt = attempt};
                   memory.send_ended = parts_.clock.now();
                   if (made) {
                     memory.sent->id = memory.made = made->id;
                     memory.handle = *made;
                     memory.held = {};
                     return;
                   }
                   if (is_left_to_gate(made.error())) memory.held = {};
                   memory.sent->failure = made.error();
                   if (!made.error().definite()) memory.unclear_send_ended = memory.send_ended;
                 });
                 if (!made && !is_left_to_gate(made.error()))
                   hold_back(wanted, "Create", made.error(), made.error().kind);
               });
}

// Whether what an attempt made is this Sandbox's no more, which only an uncached look may say.
base::Result<bool> Reconciler::is_nobodys(const api::Metadata& metadata, const Bind& step) {
  TRY(const auto truth, parts_.store.get_sandbox(metadata.key));
  const bool ours = truth && truth->metadata.uid == metadata.uid &&
                    api::attempt_of(truth->metadata) == step.attempt &&
                    (truth->status.sandbox_id.empty() || truth->status.sandbox_id == step.id);
  return !ours;
}

Outcome Reconciler::perform(const Pass& pass, const Bind& step) {
  const api::Metadata& metadata = pass.wanted().metadata;
  const auto bound =
      parts_.store.bind(metadata.key, metadata.uid, step.attempt, bound_status(pass.seen, step));
  if (bound) {
    parts_.memories.update(pass.uid(), [&](Memory& memory) {
      memory.bound_here = true;
      memory.unclear_send_ended.reset();
    });
    return Outcome{.written = true};
  }
  const auto stray = is_nobodys(metadata, step);
  if (!stray) return failed(stray.error());
  if (!*stray) return failed(bound.error());
  const auto end_it = [this, pass, step](std::stop_token stop) {
    // While it stood in line another hand may have taken it up.
    const auto still = is_nobodys(pass.wanted().metadata, step);
    if (!still) return hold_back(pass.wanted(), "Bind", still.error());
    if (!*still) return;
    const auto killed = pass.cloud(Priority::kDelete).kill(step.id, stop);
    if (!killed) hold_back(pass.wanted(), "Bind", killed.error());
  };
  return begin(pass, "Bind", false, end_it, Operation::Line::kBounded);
}

}  // namespace controller
