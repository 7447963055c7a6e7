#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/terminal/shown.h"
#include "libs/base/clock.h"
#include "libs/wire/client/pump.h"
#include "libs/wire/frames/process_operations.h"

namespace cli {

// One output of a process, on its way here.
struct Output {
  wire::OutputName name = wire::OutputName::kStdout;
  int descriptor = 1;
  bool on_screen = false;
  // Where all of it stands, if it is over, and is not kept from the first byte on.
  std::optional<std::string> file = std::nullopt;
  std::int64_t at = 0;     // What is shown next.
  std::int64_t end = 0;    // How much there was at first: where who does not follow it stops.
  std::string first = {};  // What is shown before that: it was read when it was found.
  Shown shown = {};

  // What was asked for.
  std::optional<std::uint32_t> asked = std::nullopt;
  std::optional<wire::Sink> sink = std::nullopt;
  bool answered = false, last = false;
  int losses = 0;  // Of its session, in a row.
  base::Moment ask_at = {};
  bool done = false;
};

const char* word_of(wire::OutputName name);

// Asks for so many of its bytes: of its file, or of what is kept, with `wait` until there are some.
wire::Call question(const std::string& handle, const Output& output, std::int64_t from,
                    std::int64_t bytes, base::Milliseconds wait = {});

}  // namespace cli
