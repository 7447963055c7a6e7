#pragma once

#include <map>
#include <string>
#include <string_view>

#include "executor/subprocess/request.h"

namespace executor {

using Environment = std::map<std::string, std::string>;

// Of a process: `environ`, say. Entries without a name are left out.
Environment read_environment(const char* const* entries);

// Whether a variable of the sandbox's user must not reach a program by itself: its name looks like
// a secret's, or is the harness's own.
bool is_withheld(std::string_view name);

// What of it names the terminal is this one's: what ours shows them is not ours to know. A shell
// that nothing names is the one that he logs in with.
Environment with_terminal(Environment of_user, const std::string& login_shell);

// What a program begins with: the user's less what is withheld, then the caller's changes, which
// may set any name.
Environment environment_for(const Environment& of_user, const EnvironmentChanges& changes);

}  // namespace executor
