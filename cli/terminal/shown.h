#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

// What a terminal elsewhere shows, on its way to the terminal here. Pure.
namespace cli {

// Follows the control sequences that go by (ECMA-48, and what xterm adds to it), to know two
// things: which are questions that a terminal answers, and what the terminal was switched to.
class Shown {
 public:
  // Of a sequence, which is held back until it is complete when it is shown again. One that is
  // longer is none of those that matter.
  static constexpr std::size_t kHeldBytesMax = 4096;

  // What of it goes to the terminal. `again`: it was shown before, so the questions in it were
  // answered, and another answer would be typed into whatever reads now.
  std::string pass(std::string_view bytes, bool again);

  // The modes that differ from how terminals begin: full screen, mouse, hidden cursor and the like.
  std::string leave_modes() const;
  std::string enter_modes() const;

 private:
  enum class Within { kText, kEscape, kControl, kString, kStringEscape };

  bool follow(char byte);  // Whether the sequence is complete.
  void begin();            // Between sequences.
  void learn(std::string_view sequence);
  void learn_private_modes(std::string_view parameters, bool set);

  Within within_ = Within::kText;
  std::string sequence_;     // So far; of a long one its beginning.
  bool too_long_ = false;    // It goes by unseen.
  std::size_t unshown_ = 0;  // Of it, at its end.

  // As they differ from how terminals begin.
  struct Modes {
    std::set<int> switched = {};         // Private modes.
    std::string modify_other_keys = {};  // Its level, as it was set.
    int keyboard_flags_pushed = 0;
    bool keypad = false, colours = false;
    std::string margins = {};
  } modes_;
};

}  // namespace cli
