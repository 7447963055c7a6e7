#include "libs/base/staged.h"

#include "libs/base/crypto.h"

namespace base {
namespace {

constexpr std::size_t kRandomBytes = 6;
constexpr std::string_view kEnd = ".tmp";
constexpr std::size_t kTail = 1 + 2 * kRandomBytes + kEnd.size();

}  // namespace

std::string staged_name(std::string_view name) {
  return "." + std::string(name) + "." + random_hex(kRandomBytes) + std::string(kEnd);
}

bool is_staged_name(std::string_view name) {
  if (name.size() < 1 + 1 + kTail || name.front() != '.' || !name.ends_with(kEnd)) return false;
  const std::string_view tail = name.substr(name.size() - kTail);
  const std::string_view digits = tail.substr(1, 2 * kRandomBytes);
  return tail.front() == '.' &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_staged_name_of(std::string_view target, std::string_view name) {
  return is_staged_name(name) && name.substr(1, name.size() - 1 - kTail) == target;
}

}  // namespace base
