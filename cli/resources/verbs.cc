#include "cli/resources/verbs.h"

#include "cli/resources/call.h"
#include "cli/resources/changing.h"
#include "cli/resources/reading.h"

namespace cli {

int run(const Verb& verb, const Options& options, Backend& backend, const Terminal& terminal) {
  const Call call{options, read_words(options.words), backend, terminal,
                  options.space.empty() ? backend.default_space() : options.space};
  if (verb.name == "get") return get(call);
  if (verb.name == "describe") return show(call);
  if (verb.name == "events") return events(call);
  if (verb.name == "apply") return apply(call);
  if (verb.name == "pause") return set_state(call, "pause", api::DesiredState::kPaused);
  if (verb.name == "resume") return set_state(call, "resume", api::DesiredState::kRunning);
  if (verb.name == "terminate") return set_state(call, "terminate", api::DesiredState::kTerminated);
  if (verb.name == "reconcile") return request_look(call);
  return remove(call);
}

}  // namespace cli
