#pragma once

#include <string>

#include "executor/filesystem/failure.h"
#include "executor/filesystem/identity.h"
#include "libs/wire/frames/file_operations.h"
#include "libs/wire/frames/message.h"

// What services that work on files have in common.
namespace executor {

wire::Failure failure_of(const FsError& error);

// `cwd`: of calls that name none.
FileAddress address_of(const wire::Place& place, const std::string& cwd);
FileAddress address_of(const wire::PathPlace& place, const std::string& cwd);

}  // namespace executor
