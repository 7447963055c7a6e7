#pragma once

#include "executor/process/spawn.h"
#include "libs/base/fd.h"
#include "libs/base/result.h"

namespace executor {

struct Terminal {
  base::Fd master, slave;
};
base::Result<Terminal> open_terminal(TerminalSize size, const User& owner, bool give_away);
base::Result<base::Done> resize_terminal(int master, TerminalSize size);

}  // namespace executor
