#include "cli/resources/reading.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <utility>
#include <vector>

#include "cli/print/render.h"
#include "cli/print/yaml.h"

namespace cli {
namespace {

using base::ErrorCode;
using base::Result;

constexpr base::Milliseconds kWatchAgain{60'000};  // Also when nothing seems to change.

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

}  // namespace

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

}  // namespace cli
