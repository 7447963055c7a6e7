#include "libs/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace base {
namespace {

// What may stand first in a character, and then second: table 3-7 of the Unicode standard.
struct Lead {
  unsigned char first, last;
  unsigned char second_first, second_last;
  std::size_t bytes;
};
constexpr Lead kLeads[] = {
    {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
    {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
    {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
};

const Lead* lead_of(unsigned char byte) {
  for (const Lead& lead : kLeads)
    if (byte >= lead.first && byte <= lead.last) return &lead;
  return nullptr;
}

std::size_t ascii_at(std::string_view bytes, std::size_t at) {
  const std::size_t began = at;
  for (std::uint64_t eight = 0; at + sizeof eight <= bytes.size(); at += sizeof eight) {
    std::memcpy(&eight, bytes.data() + at, sizeof eight);
    if (eight & 0x8080808080808080ULL) break;
  }
  while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) < 0x80) ++at;
  return at - began;
}

enum class Character { kWhole, kBegun, kBroken };

Character judge(std::string_view bytes, const Lead& lead) {
  for (std::size_t i = 1; i < lead.bytes; ++i) {
    if (i == bytes.size()) return Character::kBegun;
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const unsigned char first = i == 1 ? lead.second_first : 0x80;
    const unsigned char last = i == 1 ? lead.second_last : 0xBF;
    if (byte < first || byte > last) return Character::kBroken;
  }
  return Character::kWhole;
}

}  // namespace

Utf8Prefix utf8_prefix(std::string_view bytes) {
  std::size_t at = 0;
  for (;;) {
    at += ascii_at(bytes, at);
    if (at == bytes.size()) return {at, false};
    const Lead* lead = lead_of(static_cast<unsigned char>(bytes[at]));
    const Character next = lead ? judge(bytes.substr(at), *lead) : Character::kBroken;
    if (next != Character::kWhole) return {at, next == Character::kBroken};
    at += lead->bytes;
  }
}

bool is_utf8(std::string_view bytes) { return utf8_prefix(bytes).bytes == bytes.size(); }

}  // namespace base
