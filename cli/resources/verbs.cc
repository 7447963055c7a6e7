#include "cli/resources/verbs.h"

#include <algorithm>
#include <functional>
#include <istream>
#include <iterator>
#include <map>
#include <ostream>

#include "cli/print/render.h"
#include "cli/print/yaml.h"
#include "cli/resources/wait.h"
#include "libs/api/annotations.h"
#include "libs/api/words.h"
#include "libs/base/files.h"

namespace cli {
namespace {

using base::ErrorCode;
using base::Result;

constexpr base::Milliseconds kWatchAgain{60'000};  // Also when nothing seems to change.

struct Call {
  const Options& options;
  Words words;
  Backend& backend;
  const Terminal& terminal;
  std::string space;

  api::Key key(const std::string& name) const { return {space, name}; }
  // One name is asked for by itself: its reader need not be allowed to see the others.
  Where where() const {
    return {options.all_spaces ? "" : space, words.names.size() == 1 ? words.names[0] : ""};
  }
};

void warn(const Call& call) {
  const auto warnings = call.backend.warnings();
  if (!warnings) return;  // The answer itself will say why.
  for (const auto& each : *warnings) call.terminal.err << "warning: " << each << "\n";
}

bool is_for_people(const Call& call) {
  return call.options.output != "json" && call.options.output != "yaml";
}

void hint(const Call& call) {
  if (!is_for_people(call)) return;
  if (const auto why = call.backend.idleness(); !why.empty())
    call.terminal.err << "hint: " << why << "\n";
}

int usage(const Call& call, const std::string& what) {
  call.terminal.err << "sandfleet: " << what << "\n";
  return kUsage;
}

// ---- Reading ---------------------------------------------------------------------------------

bool has_asked_name(const Call& call, const api::Key& key) {
  const auto& names = call.words.names;
  return names.empty() || std::ranges::find(names, key.name) != names.end();
}

template <typename Resource>
Result<std::vector<Resource>> asked_for(const Call& call, Result<std::vector<Resource>> all) {
  if (!all) return all;
  std::erase_if(*all, [&](const auto& each) { return !has_asked_name(call, each.metadata.key); });
  return all;
}

base::Error not_found(const Call& call, std::string_view kind, const std::string& name) {
  return base::error(ErrorCode::kNotFound, "no ", kind, " \"", name, "\"",
                     kind == "Sandbox" && !call.options.all_spaces ? " in namespace " + call.space
                                                                   : std::string());
}

template <typename Resource>
bool has_name(const std::vector<Resource>& all, const std::string& name) {
  return std::ranges::any_of(all, [&](const auto& each) { return each.metadata.key.name == name; });
}

template <typename Resource>
Result<base::Done> check_all_found(const Call& call, const std::vector<Resource>& found,
                                   std::string_view kind) {
  for (const auto& name : call.words.names)
    if (!has_name(found, name)) return not_found(call, kind, name);
  return base::Done{};
}

std::string print(const Call& call, Columns& columns, const Table& table,
                  const base::Json& document) {
  if (call.options.output == "json") return base::to_text(document, 2) + "\n";
  if (call.options.output == "yaml") return to_yaml(document);
  return columns.print(table);
}

Layout layout_of(const Call& call) {
  return {.wide = call.options.output == "wide", .spaces = call.options.all_spaces};
}

std::string print(const Call& call, Columns& columns, const std::vector<api::Sandbox>& found,
                  bool single) {
  return print(call, columns, sandbox_table(found, layout_of(call), call.terminal.clock.wall()),
               to_document(found, single));
}
std::string print(const Call& call, Columns& columns,
                  const std::vector<api::SandboxProvider>& found, bool single) {
  return print(call, columns, provider_table(found, layout_of(call), call.terminal.clock.wall()),
               to_document(found, single));
}

// Prints what is new or changed since the last look; tables only the rows.
template <typename Resource>
class Changes {
 public:
  std::vector<Resource> since_last(const std::vector<Resource>& now) {
    std::vector<Resource> changed;
    std::map<api::Key, Resource> seen;
    for (const auto& each : now) {
      const auto before = seen_.find(each.metadata.key);
      if (before == seen_.end() || before->second != each) changed.push_back(each);
      seen.emplace(each.metadata.key, each);
    }
    for (const auto& [key, resource] : seen_) {
      if (!seen.contains(key)) gone_.push_back(key);
    }
    seen_ = std::move(seen);
    return changed;
  }
  std::vector<api::Key> take_gone() { return std::exchange(gone_, {}); }

 private:
  std::map<api::Key, Resource> seen_;
  std::vector<api::Key> gone_;
};

template <typename Resource>
int get(const Call& call, const Query& query, std::string_view kind,
        const std::function<Result<std::vector<Resource>>()>& list) {
  Changes<Resource> changes;
  Columns columns;
  bool first = true;
  do {
    const auto found = asked_for(call, list());
    if (!found) return fail(found.error(), call.terminal.err);
    if (first) {
      hint(call);
      if (const auto complete = check_all_found(call, *found, kind); !complete) {
        return fail(complete.error(), call.terminal.err);
      }
      if (found->empty()) call.terminal.err << "No resources found.\n";
    }
    const auto changed = changes.since_last(*found);
    for (const auto& key : changes.take_gone()) {
      call.terminal.err << api::to_text(key) << " is gone\n";
    }
    if (!changed.empty() || (first && !is_for_people(call))) {
      call.terminal.out << print(call, columns, changed, call.words.names.size() == 1)
                        << std::flush;
    }
    first = false;
  } while (call.options.watch && call.backend.await_change(query, kWatchAgain));
  return kDone;
}

int get(const Call& call) {
  warn(call);
  Where where = call.where();
  if (call.words.subject == Subject::kProviders) {
    where.space = "";
    return get<api::SandboxProvider>(call, {Collection::kProviders, where}, "SandboxProvider",
                                     [&] { return call.backend.providers(where.name); });
  }
  return get<api::Sandbox>(call, {Collection::kSandboxes, where}, "Sandbox",
                           [&] { return call.backend.sandboxes(where); });
}

int show(const Call& call) {
  if (call.words.subject != Subject::kSandboxes) {
    return usage(call, "describe shows sandboxes; for a provider use 'get sfp NAME -o yaml'");
  }
  warn(call);
  const auto found = asked_for(call, call.backend.sandboxes(call.where()));
  if (!found) return fail(found.error(), call.terminal.err);
  hint(call);
  if (const auto complete = check_all_found(call, *found, "Sandbox"); !complete) {
    return fail(complete.error(), call.terminal.err);
  }
  const auto events = call.backend.events(call.where());
  // Who may not see the events may still see the rest.
  if (!events && events.error().code != ErrorCode::kDenied)
    return fail(events.error(), call.terminal.err);
  if (!events) call.terminal.err << "warning: " << events.error().message << "\n";
  for (const auto& sandbox : *found) {
    auto own = events ? std::optional(*events) : std::nullopt;
    if (own)
      std::erase_if(*own, [&](const auto& e) { return e.regarding_uid != sandbox.metadata.uid; });
    if (&sandbox != &found->front()) call.terminal.out << "\n";
    call.terminal.out << describe(sandbox, call.backend.origin(sandbox.metadata.key), own,
                                  call.terminal.clock.wall());
  }
  return kDone;
}

bool is_same(const api::RecordedEvent& a, const api::RecordedEvent& b) {
  return a.regarding_uid == b.regarding_uid && a.event == b.event && a.count == b.count &&
         a.last == b.last;
}

// Of what is gone, the events may still tell.
Result<base::Done> check_all_known(const Call& call,
                                   const std::vector<api::RecordedEvent>& events) {
  for (const auto& name : call.words.names) {
    if (std::ranges::any_of(events, [&](const auto& e) { return e.regarding.name == name; }))
      continue;
    TRY(const auto found, call.backend.sandboxes({call.where().space, name}));
    if (found.empty()) return not_found(call, "Sandbox", name);
  }
  return base::Done{};
}

int events(const Call& call) {
  if (call.words.subject != Subject::kSandboxes) {
    return usage(call, "events are about sandboxes; for a provider use 'get sfp NAME -o yaml'");
  }
  std::vector<api::RecordedEvent> before;
  Columns columns;
  bool first = true;
  do {
    auto now = call.backend.events(call.where());
    if (!now) return fail(now.error(), call.terminal.err);
    std::erase_if(*now, [&](const auto& each) { return !has_asked_name(call, each.regarding); });
    auto fresh = *now;
    std::erase_if(fresh, [&](const auto& each) {
      return std::ranges::any_of(before, [&](const auto& old) { return is_same(old, each); });
    });
    if (first) {
      if (const auto known = check_all_known(call, *now); !known) {
        return fail(known.error(), call.terminal.err);
      }
      if (now->empty()) call.terminal.err << "No events found.\n";
    }
    if (!fresh.empty()) {
      call.terminal.out << print(call, columns,
                                 event_table(fresh, layout_of(call), call.terminal.clock.wall()),
                                 to_document(fresh))
                        << std::flush;
    }
    before = *std::move(now);
    first = false;
  } while (call.options.watch &&
           call.backend.await_change({Collection::kEvents, call.where()}, kWatchAgain));
  return kDone;
}

// ---- Asking ----------------------------------------------------------------------------------

// What a look at the sandbox says of the way to what was asked.
using Judge = std::function<Result<Progress>(const std::optional<api::Sandbox>&)>;

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

int set_state(const Call& call, const std::string& verb, api::DesiredState state) {
  if (const auto wrong = check_names(call, verb)) return *wrong;
  for (const auto& name : call.words.names) {
    const auto before = call.backend.sandbox(call.key(name));
    if (!before) return fail(before.error(), call.terminal.err);
    if (!*before) return fail(not_found(call, "Sandbox", name), call.terminal.err);
    if ((*before)->spec.desired_state == api::DesiredState::kTerminated &&
        state != api::DesiredState::kTerminated) {
      return fail(base::error(ErrorCode::kConflict, "Sandbox \"", name,
                              "\" is Terminated, and that is final; declare another, or delete it "
                              "and apply a changed manifest"),
                  call.terminal.err);
    }
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

}  // namespace

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
