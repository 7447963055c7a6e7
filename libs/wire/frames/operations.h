#pragma once

#include "libs/wire/frames/archive_operations.h"
#include "libs/wire/frames/file_operations.h"
#include "libs/wire/frames/message.h"
#include "libs/wire/frames/process_operations.h"
#include "libs/wire/frames/search_operations.h"
#include "libs/wire/frames/terminal_operations.h"

namespace wire {

// Every operation, for whoever does the same with each: visit.template operator()<Args>().
template <typename Visit>
void for_each_operation(Visit visit) {
  visit.template operator()<ResolveArgs>();
  visit.template operator()<StatArgs>();
  visit.template operator()<LstatArgs>();
  visit.template operator()<ReadTextArgs>();
  visit.template operator()<ReadBytesArgs>();
  visit.template operator()<ListDirArgs>();
  visit.template operator()<ListTreeArgs>();
  visit.template operator()<WriteArgs>();
  visit.template operator()<EditTextArgs>();
  visit.template operator()<MkdirArgs>();
  visit.template operator()<RemoveArgs>();
  visit.template operator()<RenameArgs>();
  visit.template operator()<CopyArgs>();
  visit.template operator()<WatchArgs>();
  visit.template operator()<ResolveExecutableArgs>();
  visit.template operator()<SpawnArgs>();
  visit.template operator()<ReadOutputArgs>();
  visit.template operator()<WaitArgs>();
  visit.template operator()<SignalArgs>();
  visit.template operator()<TerminateArgs>();
  visit.template operator()<AttachArgs>();
  visit.template operator()<ReleaseArgs>();
  visit.template operator()<ListProcessesArgs>();
  visit.template operator()<ResizeTerminalArgs>();
  visit.template operator()<ForegroundArgs>();
  visit.template operator()<SignalForegroundArgs>();
  visit.template operator()<CreateArchiveArgs>();
  visit.template operator()<ExtractArchiveArgs>();
  visit.template operator()<GlobArgs>();
  visit.template operator()<GrepArgs>();
  visit.template operator()<FindToolArgs>();
  visit.template operator()<PutToolArgs>();
}

// Whoever asks this waits for others to do something. A wait that is over at once is a look.
inline bool only_waits(const Request& request) {
  if (request.op == WatchArgs::kOp) return true;
  if (request.op == ReadOutputArgs::kOp)
    return base::integer_at(request.args, "waitMs").value_or(0) > 0;
  return request.op == WaitArgs::kOp && base::integer_at(request.args, "timeoutMs") != 0;
}

}  // namespace wire
