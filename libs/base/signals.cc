#include "libs/base/signals.h"

#include <csignal>
#include <cstring>

namespace base {

std::string signal_name(int number) {
  const char* known = ::sigabbrev_np(number);
  return "SIG" + (known ? std::string(known) : std::to_string(number));
}

std::optional<int> signal_number(std::string_view name) {
  for (int number = 1; number < NSIG; ++number)
    if (signal_name(number) == name) return number;
  return std::nullopt;
}

}  // namespace base
