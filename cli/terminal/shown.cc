#include "cli/terminal/shown.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "libs/base/strings.h"

namespace cli {
namespace {

constexpr char kEscape = '\x1b', kBell = '\a', kEnquiry = '\x05', kCancel = '\x18',
               kSubstitute = '\x1a';

// What sequences begin with, and those that are whole.
constexpr std::string_view kControl = "\x1b[", kPrivate = "\x1b[?", kOperatingSystem = "\x1b]";
constexpr std::string_view kAskSetting = "\x1bP$q", kAskTermcap = "\x1bP+q", kIdentify = "\x1bZ";
constexpr std::string_view kReset = "\033c", kSaveCursor = "\0337", kRestoreCursor = "\0338";
constexpr std::string_view kKeypadApplication = "\x1b=", kKeypadNumeric = "\x1b>";

// Private modes (CSI ? n h) that outlast the program that set them, and how terminals begin. Those
// of the screen come last, so that what else belongs to it is left before it.
struct PrivateMode {
  int number;
  bool at_first;
};
constexpr auto kPrivateModes = std::to_array<PrivateMode>({
    {1, false},                                                  // Application cursor keys.
    {5, false},                                                  // Reverse video.
    {6, false},                                                  // Origin within the margins.
    {7, true},                                                   // Wrap around.
    {9, false},                                                  // Mouse, of X10,
    {1000, false},                                               // and xterm's kinds.
    {1001, false}, {1002, false}, {1003, false}, {1004, false},  // Focus.
    {1005, false},                                               // How the mouse is told.
    {1006, false}, {1015, false}, {1016, false}, {2004, false},  // Bracketed paste.
    {2026, false},                                               // Updates at once.
    {25, true},                                                  // The cursor is seen.
    {47, false},                                                 // Full screen.
    {1047, false}, {1049, false},
});

// A control sequence (CSI) in its parts: "\x1b[", a mark of private use, parameters, intermediates
// and the final byte.
struct Control {
  char mark = 0;
  std::string_view parameters, intermediates;
  char last = 0;
};

Control control_in(std::string_view sequence) {
  Control control;
  std::string_view rest = sequence.substr(kControl.size());
  if (rest.front() >= '<' && rest.front() <= '?') {
    control.mark = rest.front();
    rest.remove_prefix(1);
  }
  control.last = rest.back();
  rest.remove_suffix(1);
  const auto end = std::ranges::find_if(rest, [](char byte) { return byte >= ' ' && byte <= '/'; });
  const auto count = static_cast<std::size_t>(end - rest.begin());
  control.parameters = rest.substr(0, count);
  control.intermediates = rest.substr(count);
  return control;
}

bool is_control(std::string_view sequence) {
  return sequence.size() > kControl.size() && sequence.starts_with(kControl);
}

int first_number(std::string_view parameters) { return std::atoi(std::string(parameters).c_str()); }

// The reports that CSI n t asks for; others move windows.
bool asks_about_window(int number) {
  return number == 11 || (number >= 13 && number <= 16) || (number >= 18 && number <= 21);
}

bool asks(const Control& control) {
  const bool plain = control.intermediates.empty();
  switch (control.last) {
    case 'c':  // What are you?
    case 'x':
      return plain;
    case 'n':  // Where is the cursor, and so on; with '>' it switches something off.
      return plain && control.mark != '>';
    case 'q':
      return plain && control.mark == '>';  // Which version?
    case 'u':                               // Which keyboard flags?
    case 'm':                               // How are keys modified?
      return plain && control.mark == '?';
    case 't':
      return plain && control.mark == 0 && asks_about_window(first_number(control.parameters));
    case 'p':
    case 'w':
      return control.intermediates == "$";  // Is a mode set? How is the screen?
    case 'y':
      return control.intermediates == "*";  // A checksum.
    default:
      return false;
  }
}

bool is_question(std::string_view sequence) {
  if (is_control(sequence)) return asks(control_in(sequence));
  if (sequence.starts_with(kOperatingSystem)) return sequence.find(";?") != std::string_view::npos;
  return sequence == kIdentify || sequence.starts_with(kAskSetting) ||
         sequence.starts_with(kAskTermcap);
}

std::string control_sequence(std::string_view rest) { return std::string(kControl).append(rest); }

std::string private_mode(int number, bool set) {
  return std::string(kPrivate) + std::to_string(number) + (set ? "h" : "l");
}

// Which moves the cursor, unless it is kept.
std::string set_margins(const std::string& margins) {
  return std::string(kSaveCursor) + control_sequence(margins + "r") + std::string(kRestoreCursor);
}

}  // namespace

bool Shown::follow(char byte) {
  const bool cancelled = byte == kCancel || byte == kSubstitute;
  switch (within_) {
    case Within::kText:
      within_ = Within::kEscape;  // Only an escape begins one.
      return false;
    case Within::kEscape:
      if (byte == '[') {
        within_ = Within::kControl;
      } else if (byte != '\0' && std::string_view("]P_^X").find(byte) != std::string_view::npos) {
        within_ = Within::kString;
      } else {  // Intermediates go on, and all else ends it.
        return cancelled || byte < ' ' || byte > '/';
      }
      return false;
    case Within::kControl:
      return cancelled || (byte >= '@' && byte <= '~');
    case Within::kString:
      if (byte == kEscape) within_ = Within::kStringEscape;
      return cancelled || byte == kBell;
    case Within::kStringEscape:
      if (byte == '\\' || cancelled) return true;
      within_ = byte == kEscape ? Within::kStringEscape : Within::kString;
      return false;
  }
  return false;
}

std::string Shown::pass(std::string_view bytes, bool again) {
  std::string shown;
  const auto show_held = [&] {
    shown.append(sequence_, sequence_.size() - unshown_);
    unshown_ = 0;
  };
  if (!again) show_held();
  for (const char byte : bytes) {
    if (byte == kEscape && (within_ == Within::kEscape || within_ == Within::kControl)) {
      show_held();  // It was broken off by the next one.
      begin();
    }
    if (within_ == Within::kText && byte != kEscape) {
      if (!again || byte != kEnquiry) shown += byte;
      continue;
    }
    const bool complete = follow(byte);
    if (too_long_) {
      shown += byte;
    } else {
      sequence_ += byte;
      ++unshown_;
      if (complete) learn(sequence_);
      too_long_ = !complete && sequence_.size() == kHeldBytesMax;
      if (!again || too_long_ || (complete && !is_question(sequence_))) show_held();
    }
    if (complete) begin();
  }
  return shown;
}

void Shown::begin() {
  within_ = Within::kText;
  sequence_.clear();
  unshown_ = 0;
  too_long_ = false;
}

void Shown::learn_private_modes(std::string_view parameters, bool set) {
  for (const std::string& each : base::split(std::string(parameters), ';')) {
    const int number = std::atoi(each.c_str());
    const auto known = std::ranges::find(kPrivateModes, number, &PrivateMode::number);
    if (known == kPrivateModes.end()) continue;
    if (set == known->at_first)
      modes_.switched.erase(number);
    else
      modes_.switched.insert(number);
  }
}

void Shown::learn(std::string_view sequence) {
  if (sequence == kKeypadApplication || sequence == kKeypadNumeric)
    modes_.keypad = sequence == kKeypadApplication;
  if (sequence == kReset) modes_ = {};  // All is as at first.
  if (!is_control(sequence)) return;
  const Control control = control_in(sequence);
  if (!control.intermediates.empty()) return;
  const std::string_view parameters = control.parameters;
  switch (control.last) {
    case 'h':
    case 'l':
      if (control.mark == '?') learn_private_modes(parameters, control.last == 'h');
      return;
    case 'm':
      if (control.mark == 0) modes_.colours = !parameters.empty() && parameters != "0";
      if (control.mark == '>' && (parameters == "4" || parameters.starts_with("4;")))
        modes_.modify_other_keys =
            parameters.size() > 2 && parameters != "4;0" ? parameters.substr(2) : "";
      return;
    case 'r':
      if (control.mark == 0) modes_.margins = parameters;
      return;
    case 'u':
      if (control.mark == '>') ++modes_.keyboard_flags_pushed;
      if (control.mark == '<')
        modes_.keyboard_flags_pushed =
            std::max(0, modes_.keyboard_flags_pushed - std::max(1, first_number(parameters)));
      return;
    default:
      return;
  }
}

std::string Shown::leave_modes() const {
  std::string text;
  if (modes_.keyboard_flags_pushed > 0)
    text += control_sequence("<" + std::to_string(modes_.keyboard_flags_pushed) + "u");
  if (!modes_.modify_other_keys.empty()) text += control_sequence(">4m");
  if (modes_.keypad) text += kKeypadNumeric;
  if (!modes_.margins.empty()) text += set_margins("");
  if (modes_.colours) text += control_sequence("m");
  for (const PrivateMode& mode : kPrivateModes)
    if (modes_.switched.contains(mode.number)) text += private_mode(mode.number, mode.at_first);
  return text;
}

std::string Shown::enter_modes() const {
  std::string text;
  for (auto mode = kPrivateModes.rbegin(); mode != kPrivateModes.rend(); ++mode)
    if (modes_.switched.contains(mode->number)) text += private_mode(mode->number, !mode->at_first);
  if (!modes_.margins.empty()) text += set_margins(modes_.margins);
  if (modes_.keypad) text += kKeypadApplication;
  if (!modes_.modify_other_keys.empty())
    text += control_sequence(">4;" + modes_.modify_other_keys + "m");
  return text;
}

}  // namespace cli
