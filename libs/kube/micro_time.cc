#include "libs/kube/micro_time.h"

#include <cstdio>

#include "libs/base/time.h"

namespace kube {

std::string to_micro_time(base::WallTime time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  std::string text = base::to_rfc3339(whole);
  text.pop_back();  // The Z.
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%06dZ",
                static_cast<int>((time - whole).count()) * 1'000);
  return text + fraction;
}

}  // namespace kube
