#pragma once

#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <cstring>
#include <string>

#include "libs/base/fd.h"
#include "libs/base/files.h"

namespace cli {

// A terminal of a test's, at whose keys and screen it sits itself.
class OwnTerminal {
 public:
  OwnTerminal(unsigned short rows, unsigned short columns) {
    int ours = -1, theirs = -1;
    winsize size{rows, columns, 0, 0};
    EXPECT_EQ(::openpty(&ours, &theirs, nullptr, nullptr, &size), 0);
    ours_ = base::Fd(ours);
    theirs_ = base::Fd(theirs);
    ::tcgetattr(theirs, &before_);
  }
  int descriptor() const { return theirs_.get(); }
  void type(const std::string& text) const { EXPECT_TRUE(base::write_all(ours_.get(), text)); }
  void resize(unsigned short rows, unsigned short columns) const {
    winsize size{rows, columns, 0, 0};
    EXPECT_EQ(::ioctl(ours_.get(), TIOCSWINSZ, &size), 0);
  }
  // As others would have it.
  void set_erase(char key) const {
    termios now = mode();
    now.c_cc[VERASE] = static_cast<cc_t>(key);
    EXPECT_EQ(::tcsetattr(theirs_.get(), TCSANOW, &now), 0);
  }
  char erase() const { return static_cast<char>(mode().c_cc[VERASE]); }
  void restore() const { EXPECT_EQ(::tcsetattr(theirs_.get(), TCSANOW, &before_), 0); }
  void hang_up() { ours_.reset(); }
  bool is_raw() const { return (mode().c_lflag & (ICANON | ECHO | ISIG)) == 0; }
  bool is_as_before() const {
    const termios now = mode();
    return now.c_iflag == before_.c_iflag && now.c_oflag == before_.c_oflag &&
           now.c_lflag == before_.c_lflag && std::memcmp(now.c_cc, before_.c_cc, NCCS) == 0;
  }

 private:
  termios mode() const {
    termios now{};
    ::tcgetattr(theirs_.get(), &now);
    return now;
  }

  base::Fd ours_, theirs_;
  termios before_{};
};

}  // namespace cli
