#pragma once

#include <termios.h>

#include <optional>

#include "libs/wire/frames/process_operations.h"

namespace cli {

// The terminal that this program was started in, and the only one who changes its settings. However
// it is left in the foreground, it is as others had it last.
class LocalTerminal {
 public:
  explicit LocalTerminal(int descriptor);
  ~LocalTerminal() { give_back(); }
  LocalTerminal(const LocalTerminal&) = delete;
  LocalTerminal& operator=(const LocalTerminal&) = delete;

  bool is_one() const { return before_.has_value(); }  // Else nothing has an effect.
  // Every key is a byte, and what is written is shown as it is: termios(3), cfmakeraw. Also after
  // others have had it; false: it is ours already, or not to be had. In the background this stops
  // the job, as any that wants a terminal, until it is in the foreground.
  bool take();
  // In the background it is another's already, who sets it as he likes: nothing is done.
  void give_back();
  bool taken() const { return taken_; }
  // 24 by 80 where it does not know.
  wire::TerminalSize size() const;

 private:
  bool has_foreground() const;

  int descriptor_;
  std::optional<termios> before_;  // As others had it.
  termios ours_{};
  bool taken_ = false;
};

}  // namespace cli
