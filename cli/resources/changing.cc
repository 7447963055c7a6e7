#include "cli/resources/changing.h"

#include <algorithm>
#include <functional>
#include <istream>
#include <iterator>
#include <ostream>

#include "cli/resources/wait.h"
#include "libs/api/annotations.h"
#include "libs/api/words.h"
#include "libs/base/files.h"

namespace cli {
namespace {

using base::ErrorCode;
using base::Result;

// What a look at the sandbox says of the way to what was asked.
using Judge = std::function<Result<Progress>(const std::optional<api::Sandbox>&)>;

int refuse_ended(const Call& call, const std::string& name) {
  return fail(base::error(ErrorCode::kConflict, "Sandbox \"", name,
                          "\" is Terminated, and that is final; declare another, or delete it and "
                          "apply a changed manifest"),
              call.terminal.err);
}

// Looks until it is so, it never will be, or the time is up.
int wait_for(const Call& call, const api::Key& key, const Judge& judge) {
  const auto end = call.terminal.clock.now() + base::Seconds(call.options.timeout_seconds);
  std::string said;
  while (true) {
    const auto sandbox = call.backend.sandbox(key);
    if (!sandbox) return fail(sandbox.error(), call.terminal.err);
    const auto judged = judge(*sandbox);
    if (!judged) return fail(judged.error(), call.terminal.err);
    const Progress& now = *judged;
    if (now.verdict == Progress::Verdict::kReached) return kDone;
    if (now.verdict == Progress::Verdict::kStalled) {
      call.terminal.err << "sandfleet: sandbox/" << key.name << " is stalled: " << now.words
                        << "\n";
      return kFailed;
    }
    if (now.verdict == Progress::Verdict::kRefused) {
      call.terminal.err << "sandfleet: sandbox/" << key.name
                        << ": the controller refuses: " << now.words << "\n";
      return kRefused;
    }
    if (now.verdict == Progress::Verdict::kEnded) return refuse_ended(call, key.name);
    if (now.words != said) {
      call.terminal.err << "waiting for sandbox/" << key.name << ": " << now.words << "\n";
      said = now.words;
    }
    const auto left = end - call.terminal.clock.now();
    const Query query{Collection::kSandboxes, {key.space, key.name}};
    if (left <= base::Milliseconds(0) || !call.backend.await_change(query, left)) {
      call.terminal.err << "sandfleet: sandbox/" << key.name << ": not so after "
                        << call.options.timeout_seconds << "s: " << now.words
                        << (now.heard ? "\n" : "; is the controller running?\n");
      return kTimedOut;
    }
  }
}

// What each verb that takes names needs before it begins.
std::optional<int> check_names(const Call& call, const std::string& verb) {
  if (call.words.subject != Subject::kSandboxes) {
    return usage(call, verb + " is for sandboxes; a provider is changed in its manifest");
  }
  if (call.words.names.empty()) {
    return usage(call, verb + " needs a name: " + call.options.program + " " + verb + " NAME");
  }
  return std::nullopt;
}

}  // namespace

int set_state(const Call& call, const std::string& verb, api::DesiredState state) {
  if (const auto wrong = check_names(call, verb)) return *wrong;
  for (const auto& name : call.words.names) {
    const auto before = call.backend.sandbox(call.key(name));
    if (!before) return fail(before.error(), call.terminal.err);
    if (!*before) return fail(not_found(call, "Sandbox", name), call.terminal.err);
    const bool ended = (*before)->spec.desired_state == api::DesiredState::kTerminated ||
                       has_ended_for_good(**before);
    if (ended && state != api::DesiredState::kTerminated) return refuse_ended(call, name);
    // Its spec may say Running all the while.
    const bool wakes = state == api::DesiredState::kRunning &&
                       (*before)->spec.desired_state == state && api::stays_idle(**before);
    const auto asked = wakes ? call.backend.request_wake(**before)
                             : call.backend.set_desired_state(**before, state);
    if (!asked) return fail(asked.error(), call.terminal.err);
    call.terminal.out << asked->what << "\n" << std::flush;
  }
  int worst = kDone;
  for (const auto& name : call.words.names) {
    if (!call.options.wait) break;
    const int ended = wait_for(
        call, call.key(name), [state](const auto& sandbox) { return progress_to(state, sandbox); });
    worst = std::max(worst, ended);
  }
  return worst;
}

int request_look(const Call& call) {
  if (const auto wrong = check_names(call, "reconcile")) return *wrong;
  for (const auto& name : call.words.names) {
    const auto seen = call.backend.sandbox(call.key(name));
    if (!seen) return fail(seen.error(), call.terminal.err);
    if (!*seen) return fail(not_found(call, "Sandbox", name), call.terminal.err);
    const auto asked = call.backend.request_look(**seen);
    if (!asked) return fail(asked.error(), call.terminal.err);
    call.terminal.out << asked->what << "\n" << std::flush;
  }
  hint(call);  // Who asks for a look wants to know that nobody is there to take it.
  return kDone;
}

int remove(const Call& call) {
  if (const auto wrong = check_names(call, "delete")) return *wrong;
  Removal removal{.remove_manifest = call.options.remove_manifest};
  if (!call.options.policy.empty()) {
    removal.policy = api::from_word<api::DeletionPolicy>(call.options.policy);
  }
  struct Going {
    api::Key key;
    std::string uid, request;
  };
  std::vector<Going> all;
  for (const auto& name : call.words.names) {
    const auto before = call.backend.sandbox(call.key(name));
    if (!before) return fail(before.error(), call.terminal.err);
    if (!*before) return fail(not_found(call, "Sandbox", name), call.terminal.err);
    const auto asked = call.backend.remove(**before, removal);
    if (!asked) return fail(asked.error(), call.terminal.err);
    call.terminal.out << asked->what << "\n" << std::flush;
    all.push_back({call.key(name), (*before)->metadata.uid, asked->request});
  }
  int worst = kDone;
  for (const auto& going : all) {
    if (!call.options.wait) break;
    const auto judge = [&](const std::optional<api::Sandbox>& sandbox) -> Result<Progress> {
      TRY(const auto refusal, call.backend.refusal(going.request));
      return progress_to_absence(going.uid, sandbox, refusal);
    };
    worst = std::max(worst, wait_for(call, going.key, judge));
  }
  return worst;
}

int apply(const Call& call) {
  const bool piped = call.options.file == "-";
  auto text =
      piped ? Result<std::string>(std::string(std::istreambuf_iterator<char>(call.terminal.in), {}))
            : base::read_file(call.options.file);
  if (!text) return fail(text.error(), call.terminal.err);
  const auto asked = call.backend.apply({.name = piped ? "" : call.options.file,
                                         .text = *std::move(text),
                                         .space = call.space,
                                         .force_conflicts = call.options.force_conflicts});
  if (!asked) return fail(asked.error(), call.terminal.err);
  call.terminal.out << asked->what << "\n" << std::flush;
  int worst = kDone;
  for (const auto& [key, spec] : asked->sandboxes) {
    if (!call.options.wait) break;
    const int ended = wait_for(
        call, key, [&spec = spec](const auto& sandbox) { return progress_to(spec, sandbox); });
    worst = std::max(worst, ended);
  }
  return worst;
}

}  // namespace cli
