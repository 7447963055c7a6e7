#include "libs/base/staged.h"

#include "libs/base/crypto.h"

namespace base {
namespace {

constexpr std::size_t kRandomBytes = 6;
constexpr std::string_view kEnd = ".tmp";

}  // namespace

std::string staged_name(std::string_view name) {
  return "." + std::string(name) + "." + random_hex(kRandomBytes) + std::string(kEnd);
}

bool is_staged_name(std::string_view name) {
  constexpr std::size_t kTail = 1 + 2 * kRandomBytes + kEnd.size();
  if (name.size() < 1 + 1 + kTail || name.front() != '.' || !name.ends_with(kEnd)) return false;
  const std::string_view tail = name.substr(name.size() - kTail);
  const std::string_view digits = tail.substr(1, 2 * kRandomBytes);
  return tail.front() == '.' &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace base
