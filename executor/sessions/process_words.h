#pragma once

#include <string>

#include "executor/subprocess/failure.h"
#include "executor/subprocess/request.h"
#include "executor/subprocess/subprocess.h"
#include "libs/wire/frames/message.h"
#include "libs/wire/frames/process_operations.h"

// What the session protocol calls what executor/subprocess knows.
namespace executor {

wire::Failure no_such_signal(const std::string& name);

wire::Failure failure_of(const ProcessFailure& failure);
wire::ProcessState state_of(const SubprocessState& state);

TerminalSize size_of(const wire::TerminalSize& size);

// A wish as it came, but for the data of its stdin. `cwd`: of one that names none.
SpawnRequest request_of(const wire::SpawnArgs& args, const std::string& cwd);

}  // namespace executor
