#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "executor/filesystem/filesystem.h"
#include "executor/search/search.h"
#include "executor/search/tools.h"
#include "executor/sessions/call.h"
#include "libs/aio/background.h"
#include "libs/aio/task.h"

namespace executor {

// The searches of docs/protocol.md, and how the program that makes them gets here.
class SearchService {
 public:
  // `tools`: a private folder, for the program.
  SearchService(Filesystem& files, SubprocessSite programs, std::string tools, std::string cwd);

  // Nothing when it is no such operation; else what serves it. All of them are open to every mode.
  std::optional<aio::Task<>> serve(const std::shared_ptr<Call>& call);

  void lose_all() { searches_.lose_all(); }
  aio::Task<> end_all() { return searches_.end_all(); }
  aio::Task<> tend() { return searches_.tend(); }

 private:
  Filesystem& files_;
  aio::Background& background_;
  Searches searches_;
  ToolPlace ripgrep_;
  std::string cwd_;
};

}  // namespace executor
