#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "executor/admin/admin.h"
#include "executor/filesystem/filesystem.h"
#include "executor/sessions/archive_service.h"
#include "executor/sessions/call.h"
#include "executor/sessions/file_service.h"
#include "executor/sessions/process_service.h"
#include "executor/sessions/search_service.h"
#include "executor/sessions/terminal_service.h"
#include "executor/subprocess/subprocesses.h"
#include "libs/aio/background.h"
#include "libs/aio/loop.h"
#include "libs/wire/web/web_links.h"

namespace executor {

struct SessionsSite {
  aio::Executor executor;
  aio::Background& background;
  const base::Clock& clock;
  wire::KnownTime& time;
  Activity& activity;
  std::shared_ptr<Stagings> stagings;
  SubprocessSite processes;
  std::string instance, attach_key;
  std::string tools;      // A private folder, for the programs that this one runs.
  std::string workspace;  // Where calls begin, and what WorkspaceWrite is about.
};

// What harnesses do inside this sandbox, over docs/protocol.md.
//   WebLinks -> an event of a session -> a coroutine for each request, by the service for its
//   operation
class Sessions final : public PauseListener {
 public:
  Sessions(SessionsSite site, const wire::Identity& identity);
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  aio::Task<> serve(std::shared_ptr<aio::HttpExchange> exchange) { return links_.serve(exchange); }
  aio::Task<> tend();  // To be run beside.
  aio::Task<> stop();  // This program is about to end, and with it all that was begun here.

  void quiesced() override { links_.quiesce(); }
  void thawed() override { links_.thaw(); }
  void resumed(const wire::Resumed& told) override;

 private:
  using Key = std::pair<std::string, std::uint32_t>;  // Session and request.
  void handle(wire::HostEvent event);
  void begin(const std::string& session, wire::Request request);
  void move(const std::string& session, std::uint32_t stream);
  void give_up(const std::string& session, std::uint32_t id);
  void end(const std::string& session, wire::SessionEnd why);
  static aio::Task<> end_processes(Sessions& sessions, std::string session);
  static aio::Task<> run(Sessions& sessions, Key key, std::shared_ptr<Progress> progress,
                         aio::Task<> serving, std::unique_ptr<Activity::Work> work);
  Permission permission_of(const std::string& session, const wire::Request& request) const;

  aio::Executor executor_;
  Activity& activity_;
  std::string workspace_;
  Filesystem files_;
  FileService file_service_;
  ArchiveService archive_service_;
  SearchService search_service_;
  std::map<Key, std::shared_ptr<Progress>> at_work_;
  wire::Identity identity_;
  wire::WebLinks links_;
  Subprocesses processes_;
  ProcessService process_service_;
  TerminalService terminal_service_;
  aio::TaskGroup tasks_;
};

}  // namespace executor
