#include "executor/sessions/sessions.h"

#include <utility>

#include "executor/confine/permission.h"
#include "libs/base/log.h"
#include "libs/wire/frames/operations.h"

namespace executor {
namespace {

// How often, and how far apart, the end of what a session began is tried.
constexpr int kEndTriesMax = 10;
constexpr base::Milliseconds kEndAgainAfter{10'000};

wire::HostSettings settings_of(const SessionsSite& site) {
  return {.instance = site.instance,
          .attach_key = site.attach_key,
          .cwd = site.workspace,
          .workspace_root = site.workspace,
          .features = {"files", "watch", "processes", "terminals", "archives", "search"}};
}

}  // namespace

Sessions::Sessions(SessionsSite site, const wire::Identity& identity)
    : executor_(site.executor),
      activity_(site.activity),
      workspace_(site.workspace),
      files_(site.executor, site.background, site.stagings, AtHand(site.workspace)),
      file_service_(files_, site.workspace),
      archive_service_(site.executor, files_, site.stagings, site.workspace),
      search_service_(files_, site.processes, site.tools, site.workspace),
      identity_(identity),
      links_(
          site.executor, settings_of(site), identity, site.clock, site.time,
          [this](wire::HostEvent event) { handle(std::move(event)); },
          [this] { activity_.moved(); }),
      processes_(std::move(site.processes)),
      process_service_(processes_, links_, site.executor, site.workspace),
      terminal_service_(processes_, site.background),
      tasks_(site.executor) {}

void Sessions::handle(wire::HostEvent event) {
  const std::string& session = event.session;
  if (const auto* why = std::get_if<wire::SessionEnd>(&event.what)) return end(session, *why);
  std::visit(
      base::Overloaded{[&](wire::Asked& asked) { begin(session, std::move(asked.request)); },
                       [&](const wire::Cancelled& cancelled) { give_up(session, cancelled.id); },
                       [&](const wire::Arrived& arrived) { move(session, arrived.stream); },
                       [&](const wire::RoomMade& room) { move(session, room.stream); },
                       [&](const wire::Unwanted& unwanted) { move(session, unwanted.stream); }},
      std::get<wire::SessionEvent>(event.what));
}

Permission Sessions::permission_of(const std::string& session, const wire::Request& request) const {
  Permission ceiling{links_.ceiling(session).value_or(wire::Ceiling::kReadOnly), {workspace_}};
  std::optional<std::string_view> mode;
  if (request.permission_mode) mode = wire::to_word(*request.permission_mode);
  return narrow(std::move(ceiling), mode, request.workspace_root);
}

void Sessions::begin(const std::string& session, wire::Request request) {
  const Key key{session, request.id};
  const std::string op = request.op;
  const bool works = !wire::only_waits(request);
  Permission permission = permission_of(session, request);
  auto progress = std::make_shared<Progress>(executor_);
  const auto call = std::make_shared<Call>(links_, session, std::move(request), progress);
  auto serving = file_service_.serve(call, permission);
  if (!serving) serving = archive_service_.serve(call, permission);
  if (!serving) serving = search_service_.serve(call);
  if (!serving) serving = process_service_.serve(call, permission);
  if (!serving) serving = terminal_service_.serve(call, std::move(permission));
  if (!serving)
    return call->fail(wire::failure(wire::FailureCode::kUnsupported,
                                    "this executor does not know the operation " + op));
  at_work_[key] = progress;
  auto work = works ? std::make_unique<Activity::Work>(activity_) : nullptr;
  tasks_.spawn(run(*this, key, std::move(progress), *std::move(serving), std::move(work)));
}

aio::Task<> Sessions::run(Sessions& sessions, Key key, std::shared_ptr<Progress> progress,
                          aio::Task<> serving, std::unique_ptr<Activity::Work> work) {
  co_await std::move(serving);
  work.reset();
  // The same may have been asked again, when nobody waited for this one's download any more.
  const auto found = sessions.at_work_.find(key);
  if (found != sessions.at_work_.end() && found->second == progress) sessions.at_work_.erase(found);
}

void Sessions::move(const std::string& session, std::uint32_t stream) {
  const auto found = at_work_.find({session, stream});
  if (found != at_work_.end()) found->second->moved.notify_all();
  process_service_.move(session, stream);
}

void Sessions::give_up(const std::string& session, std::uint32_t id) {
  const auto found = at_work_.find({session, id});
  if (found == at_work_.end()) return;
  found->second->give_up();
}

void Sessions::end(const std::string& session, wire::SessionEnd why) {
  for (const auto& [key, progress] : at_work_) {
    if (key.first != session) continue;
    progress->give_up();
  }
  process_service_.end(session);
  if (why == wire::SessionEnd::kGaveWay)
    base::log::info("a session without a link gave way to a newer one of the same harness");
  if (why == wire::SessionEnd::kBroken)
    base::log::warn("a session ended since the protocol was broken in it");
  // What went with its incarnation is known as lost for a while.
  if (why != wire::SessionEnd::kLost) tasks_.spawn(end_processes(*this, session));
}

aio::Task<> Sessions::end_processes(Sessions& sessions, std::string session) {
  for (int tries = 0; tries < kEndTriesMax; ++tries) {
    const auto ended = co_await sessions.processes_.end_session(session);
    if (ended) co_return;
    base::log::warn("not all processes of a session have ended with it",
                    {{"error", ended.error().message}});
    co_await aio::sleep_for(kEndAgainAfter);
  }
}

void Sessions::resumed(const wire::Resumed& told) {
  const wire::Identity& now = told.identity;
  const bool moved = now.uid != identity_.uid || now.epoch != identity_.epoch ||
                     now.incarnation != identity_.incarnation;
  identity_ = now;
  if (moved) {
    processes_.lose_all();
    search_service_.lose_all();
  }
  links_.resumed(told);
}

aio::Task<> Sessions::tend() {
  return aio::both(links_.tend(), aio::both(processes_.tend(), search_service_.tend()));
}

aio::Task<> Sessions::stop() {
  links_.shut_down();
  return aio::both(processes_.end_all(), search_service_.end_all());
}

}  // namespace executor
