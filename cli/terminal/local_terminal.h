#pragma once

#include <termios.h>

#include <optional>

#include "libs/wire/frames/process_operations.h"

namespace cli {

// The terminal that this program was started in. However it is left, it is as it was before.
class LocalTerminal {
 public:
  explicit LocalTerminal(int descriptor);
  ~LocalTerminal() { restore(); }
  LocalTerminal(const LocalTerminal&) = delete;
  LocalTerminal& operator=(const LocalTerminal&) = delete;

  bool is_one() const { return before_.has_value(); }  // Else nothing has an effect.
  // Every key is a byte, and what is written is shown as it is: termios(3), cfmakeraw. Again after
  // others have had it.
  void make_raw();
  void restore();
  bool raw() const { return raw_; }
  // 24 by 80 where it does not know.
  wire::TerminalSize size() const;

 private:
  int descriptor_;
  std::optional<termios> before_;
  bool raw_ = false;
};

}  // namespace cli
