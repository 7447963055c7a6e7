#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cli/line/terminal.h"
#include "cli/reach/ends.h"
#include "libs/base/clock.h"
#include "libs/base/result.h"
#include "libs/wire/client/connection.h"
#include "libs/wire/frames/process_operations.h"

// What verbs ask of a session, whose answers they hear in loops of their own.
namespace cli {

// For an answer that costs an executor little.
inline constexpr base::Seconds kAnswerWithin{60};

// Why nothing can be asked: the exit code, and what is to be said about it, if anything is.
struct NotOpen {
  int code;
  std::string why = {};
};
// Opens it, until a signal comes. Nothing: it is open.
std::optional<NotOpen> open_session(wire::Connection& connection, const Ends& ends);

// How a process is. A signal gives up the wait.
base::Result<wire::ProcessState, wire::Failure> look_at(wire::Connection& connection,
                                                        const std::string& handle, const Ends& ends,
                                                        const Terminal& terminal);

// The request's id; nothing: it is longer than a request may be, or there are too many.
template <typename Args>
std::optional<std::uint32_t> ask(wire::ClientSession& session, const Args& args,
                                 wire::Call how = {}) {
  const auto id = session.ask(wire::call_of(args, std::move(how)));
  return id ? std::optional(*id) : std::nullopt;
}

}  // namespace cli
